// The tabulator reaches every control that can be seen.

const MOST = 300; // controls of one page that are tried, in their order
const AT_ONCE = 10; // presses that are on their way together

export async function keyboard(page) {
  await page.evaluate(() => {
    // What refreshes or streams by itself would move the controls meanwhile.
    for (const b of document.querySelectorAll('main button'))
      if (['Refresh is on', 'Hold'].includes(b.innerText)) b.click();
    document.activeElement.blur();
    getSelection().removeAllRanges();
    window.reached = new Set();
    window.onfocusin = null;
    document.addEventListener('focusin', (e) => window.reached.add(e.target));
  });
  const count = await page.evaluate((most) => {
    const all = document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]');
    window.controls = [...all].filter((c) => !c.disabled && c.checkVisibility({visibilityProperty: true})).slice(0, most);
    return window.controls.length;
  }, MOST);
  // Focus goes to the end of the document and around once, wherever it began.
  await page.evaluate(() => document.querySelector('.skip').focus());
  for (let i = 0; i < count + 2; i += AT_ONCE) await Promise.all(Array.from({length: AT_ONCE}, () => page.keyboard.press('Tab')));
  return page.evaluate(() => {
    for (const b of document.querySelectorAll('main button')) if (b.innerText === 'Refresh is off') b.click();
    const missed = window.controls.filter((c) => c.isConnected && !window.reached.has(c));
    const focused = document.activeElement;
    const out = missed.length > 0 ? [`the keyboard does not reach ${missed.length} of ${window.controls.length}: ${missed[0].outerHTML.slice(0, 120)}`] : [];
    if (focused && focused !== document.body && getComputedStyle(focused).outlineStyle === 'none') out.push(`focus is not seen on ${focused.outerHTML.slice(0, 120)}`);
    return out;
  });
}
