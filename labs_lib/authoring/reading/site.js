// Runs the explorers of a page without Jupyter: a model that only holds values, and the way in.
"use strict";
(() => {
  const made = new Map();

  // An explorer's script calls this with its name and what anywidget would have been given.
  window.labsExplorer = (name, found) => made.set(name, found);

  // Bytes were written down as {"bytes": base64}.
  function decoded(value) {
    if (Array.isArray(value)) return value.map(decoded);
    if (value === null || typeof value !== "object") return value;
    if (typeof value.bytes === "string" && Object.keys(value).length === 1) {
      const text = atob(value.bytes);
      return new DataView(Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer);
    }
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, decoded(part)]));
  }

  function model_of(state) {
    return {
      get: (name) => state[name],
      set: (name, value) => (state[name] = value),
      save_changes() {},
      on() {},
      off() {},
    };
  }

  function show(place) {
    const state = decoded(JSON.parse(document.getElementById(place.dataset.state).textContent));
    const still = [...place.children];
    const el = document.createElement("div");
    place.append(el);
    try {
      made.get(place.dataset.explorer).render({ model: model_of(state), el });
      still.forEach((part) => part.remove());
    } catch (error) {
      el.remove(); // the still picture stays
      console.error(error);
    }
  }

  function theme() {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const remember = (name) => {
      try {
        if (name) localStorage.setItem("labs-theme", name);
        return localStorage.getItem("labs-theme");
      } catch {
        return null; // a page from a file may have no memory
      }
    };
    const wear = (name) => {
      root.dataset.theme = name;
      document.body.className = name; // explorers watch it
    };
    if (["light", "dark"].includes(remember())) wear(remember());
    button.hidden = false;
    button.addEventListener("click", () => {
      const now = root.dataset.theme ?? (system.matches ? "dark" : "light");
      const other = now === "dark" ? "light" : "dark";
      wear(other);
      remember(other);
    });
  }

  document.addEventListener("DOMContentLoaded", () => {
    theme();
    document.querySelectorAll("[data-explorer]").forEach(show);
  });
})();
