// Preact and htm, joined. Strings always become text nodes: nothing here parses HTML at run time.
import {Component, Fragment, h, render} from './vendor/preact.mjs';
import htm from './vendor/htm.mjs';

export const html = htm.bind(h);
export {Component, Fragment, render};
