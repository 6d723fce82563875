// The address: #/page/name/…?key=value. All of it stays behind the #, so the page works in any folder.

let shownNs = null; // the namespace in links; null where there is only one

export const nsInLinks = (ns) => {
  shownNs = ns;
};

const decode = (s) => {
  try {
    return decodeURIComponent(s);
  } catch {
    return s;
  }
};

export function parse(hash) {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split(/\?(.*)/s);
  return {path: path.split('/').filter((p) => p !== '').map(decode), params: new URLSearchParams(query)};
}

// href(['queues', name], {state: 'dead'}) -> "#/queues/mail?state=dead"
export function href(path, params = {}) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(shownNs === null ? params : {...params, ns: shownNs}))
    if (v !== undefined && v !== null && v !== '') query.set(k, v);
  const tail = query.toString();
  return `#/${path.map((p) => encodeURIComponent(p)).join('/')}${tail ? `?${tail}` : ''}`;
}
