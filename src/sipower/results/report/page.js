"use strict";
(() => {
  const at = (id) => document.getElementById(id);

  function searchable() {
    const rows = [...at("component-table").tBodies[0].rows];
    const show = () => {
      const wanted = at("component-search").value.trim().toLowerCase();
      for (const row of rows) {
        const number = row.cells[0].textContent.trim();
        const features = [...row.querySelectorAll("bdi")];
        const named = features.some((name) => name.textContent.toLowerCase().includes(wanted));
        row.hidden = !(wanted === "" || number === wanted || named);
      }
      const shown = rows.filter((row) => !row.hidden).length;
      at("component-count").textContent = `${shown} of ${rows.length} components`;
    };
    at("component-search").addEventListener("input", show);
    show();
  }

  function sortable() {
    const body = at("component-table").tBodies[0];
    const heads = [...at("component-table").tHead.rows[0].cells];
    const value = (row, column) => Number(row.cells[column].dataset.value);
    heads.forEach((head, column) => {
      if (!body.rows[0].cells[column].dataset.value) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const sign = up ? 1 : -1;
        const rows = [...body.rows];
        rows.sort((a, b) => sign * (value(a, column) - value(b, column)));
        body.append(...rows);
      });
    });
  }

  function contents() {
    const nav = document.createElement("nav");
    nav.setAttribute("aria-label", "Contents");
    for (const part of document.querySelectorAll("section")) {
      const link = document.createElement("a");
      link.href = `#${part.id}`;
      link.textContent = part.querySelector("h2").textContent;
      nav.append(link);
    }
    document.querySelector("header").append(nav);
  }

  contents();
  searchable();
  sortable();
})();
