// Sets the theme before the first paint. Without a choice the system's setting holds.
'use strict';
(() => {
  const chosen = localStorage.getItem('plumb-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
