// Runs before the first paint, so that the page never flashes in the other theme. Not a module: those run later.
"use strict";

(() => {
  const NAMES = ["auto", "light", "dark"];
  let name = "auto";
  try {
    name = localStorage.getItem("facets-theme") ?? "auto";
  } catch {
    // Storage is disabled in this browser: every start uses the system's theme.
  }
  document.documentElement.dataset.theme = NAMES.includes(name) ? name : "auto";

  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme-button");
    const label = () => {
      button.textContent = `Theme: ${document.documentElement.dataset.theme}`;
    };
    label();
    button.addEventListener("click", () => {
      const next = NAMES[(NAMES.indexOf(document.documentElement.dataset.theme) + 1) % NAMES.length];
      document.documentElement.dataset.theme = next;
      try {
        localStorage.setItem("facets-theme", next);
      } catch {
        // As above.
      }
      label();
      document.dispatchEvent(new Event("themechange"));
    });
  });
})();
