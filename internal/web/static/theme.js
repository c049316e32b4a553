"use strict";
// The chosen theme is set before anything is drawn.
{
  const chosen = localStorage.getItem("theme");
  if (chosen) document.documentElement.dataset.theme = chosen;
}
