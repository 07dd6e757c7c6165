// Runs before the first paint, so that the page never flashes in the other theme. Not a module: those run later.
try {
  document.documentElement.dataset.theme = localStorage.getItem("facets-theme") ?? "auto";
} catch {
  document.documentElement.dataset.theme = "auto"; // storage is disabled in this browser
}
