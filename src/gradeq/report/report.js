(() => {
"use strict";
gradeq.show(JSON.parse(document.getElementById("data").textContent));
gradeq.cutNames();
const on = (id, act) => { const made = document.getElementById(id); if (made) made.addEventListener("click", () => act(made)); };
on("theme", gradeq.turn);
on("print", () => window.print());
on("all", gradeq.open);
on("copy", button => gradeq.copy(button, document.getElementById("command")));
})();
