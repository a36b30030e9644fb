// Runs before anything is painted, so that the chosen colours are there at
// once. Without a choice the system's own hold.
"use strict";
{
  const chosen = localStorage.getItem("theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
}
