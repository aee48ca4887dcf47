(function () {
  var folded = [];
  addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (part) { part.open = true; });
  });
  addEventListener("afterprint", function () {
    folded.forEach(function (part) { part.open = false; });
  });
  var button = document.getElementById("print");
  if (button) {
    button.hidden = false;
    button.addEventListener("click", function () { print(); });
  }
})();
