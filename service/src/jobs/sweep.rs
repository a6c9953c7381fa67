//! The periodic work: ending jobs whose time is up, and adapting the number of workers to the load.

use std::sync::Arc;

use super::upkeep;
use crate::app::App;
use crate::problem::Problem;

/// Runs until the service drains.
pub(crate) async fn run(app: Arc<App>) {
    let mut troubled = false;
    loop {
        tokio::select! {
            () = app.draining.cancelled() => return,
            () = tokio::time::sleep(app.options.timing.tick) => {}
        }
        let done = match once(&app).await {
            Ok(()) => app.fleet.tick(&app).await,
            Err(problem) => Err(problem),
        };
        // Logged once, not at every tick.
        if let Err(problem) = &done
            && !troubled
        {
            let why = problem.cause().unwrap_or(&problem.message);
            app.warn(&format!("jobs and workers are not looked after: {why}"));
        }
        troubled = done.is_err();
    }
}

/// Ends the jobs whose time is up.
pub(crate) async fn once(app: &Arc<App>) -> Result<(), Problem> {
    if !app.store.read(upkeep::is_due).await? {
        return Ok(());
    }
    let queue = app.queue.clone();
    for job in app.store.write(move |tx| queue.sweep(tx)).await? {
        app.warn(&format!("job {} ran out of time", job.id));
        app.stop_job(job.worker.as_deref(), &job.id);
    }
    Ok(())
}
