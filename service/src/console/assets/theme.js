// Sets the theme before the first paint. If the user has chosen none, the setting of the system
// applies.
'use strict';
(() => {
  const chosen = localStorage.getItem('plumb-theme');
  if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
})();
