// What would keep somebody from reading the page: returns a list of sentences.
const faults = [];
const shown = (e) => e.offsetParent !== null && getComputedStyle(e).visibility !== 'hidden';
const levels = [...document.querySelectorAll('h1,h2,h3,h4,h5,h6')].filter(shown).map((e) => +e.tagName[1]);
if (levels.filter((l) => l === 1).length !== 1) faults.push('there is not one first heading');
levels.forEach((l, i) => { if (i && l > levels[i - 1] + 1) faults.push('a heading skips a level'); });
if (document.querySelectorAll('main').length !== 1) faults.push('there is not one main landmark');
if (!document.querySelector('header')) faults.push('there is no banner');
if (!document.documentElement.lang) faults.push('the language is not named');
if (!document.title) faults.push('the page has no title');
const ids = [...document.querySelectorAll('[id]')].map((e) => e.id);
ids.forEach((id, i) => { if (id && ids.indexOf(id) !== i) faults.push('an id is used twice: ' + id); });
const rgb = (c) => { const m = c.match(/[\d.]+/g) || [0, 0, 0, 0]; return [+m[0], +m[1], +m[2], m.length > 3 ? +m[3] : 1]; };
const light = (c) => { const v = c.slice(0, 3).map((x) => { x /= 255; return x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4; });
  return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] > .9) return c; }
  return [255, 255, 255, 1]; };
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || !shown(e) || e.closest('svg, script, style, .q-icon, [aria-hidden="true"], .disabled, .skip')) continue;
  const style = getComputedStyle(e);
  if (style.clipPath !== 'none' || +style.opacity < .1) continue;
  const a = light(rgb(style.color)), b = light(behind(e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && +style.fontWeight >= 700);
  if (ratio < (large ? 3 : 4.5)) faults.push('contrast ' + ratio.toFixed(2) + ': ' + walker.currentNode.textContent.trim().slice(0, 40));
}
return [...new Set(faults)];
