// Makes the pictures of doc/web.md.
//
//     node pictures.mjs [FOLDER]        (MINUTES=3: how long things happen before)
import fs from 'node:fs';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {chromium} from 'playwright-core';
import {scene} from './scene.mjs';
import {pause} from './servers.mjs';

const {CHROMIUM = '/usr/bin/chromium', MINUTES = '3'} = process.env;
const FOLDER = process.argv[2] ?? fileURLToPath(new URL('../../doc/web', import.meta.url));

async function main() {
  const {base, token, stop} = await scene();
  const browser = await chromium.launch({executablePath: CHROMIUM, args: ['--no-sandbox']});
  try {
    const headers = {Authorization: `Bearer ${token}`};
    const get = async (what) => (await fetch(`${base}api/v1/default/${what}`, {headers})).json();
    const parked = (await get('queues/deploy/jobs?state=parked')).jobs[0].id;
    await pause(Number(MINUTES) * 60000);
    for (const [name, hash, width, colorScheme] of [
      ['overview', '#/', 1280, 'light'],
      ['queue', '#/queues/deploy?state=parked', 1280, 'light'],
      ['job', `#/jobs/${parked}`, 1280, 'light'],
      ['dead', '#/dead', 1280, 'light'],
      ['gates-dark', '#/gates', 1280, 'dark'],
      ['dead-narrow', '#/dead', 360, 'light'],
    ]) {
      const page = await browser.newPage({viewport: {width, height: 720}, colorScheme, reducedMotion: 'reduce'});
      await page.goto(`${base}#token=${token}`);
      await page.waitForSelector('main[data-state=ready]');
      await page.evaluate((h) => { location.hash = h; }, hash);
      await page.waitForFunction((h) => {
        const main = document.querySelector('main[data-state=ready]');
        return main && main.dataset.route === h.replace(/^#\/?/, '').split('?')[0];
      }, hash);
      fs.mkdirSync(FOLDER, {recursive: true});
      await page.screenshot({path: path.join(FOLDER, `${name}.png`)});
      await page.close();
    }
  } finally {
    await browser.close();
    await stop();
  }
}

await main();
