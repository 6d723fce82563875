// A producer for laterd in Node: later_add through ioredis, a thousand calls in a pipeline. So the
// library and addBulk are compared in the same language and on the same client.
const IORedis = require('ioredis');
const { n, now, answer } = require('./common.js');

const PER_CALL = 1000;

async function main() {
  const redis = new IORedis({ host: '127.0.0.1', port: Number(process.env.REDIS_PORT) });
  await redis.ping();
  const from = now();
  for (let i = 0; i < n; i += PER_CALL) {
    const pipeline = redis.pipeline();
    for (let k = i; k < Math.min(n, i + PER_CALL); k++) {
      const payload = JSON.stringify({ due: 0, pad: 'x'.repeat(100) });
      pipeline.call('FCALL', 'later_add', 1, 'later:{default}', 'bench', payload);
    }
    for (const [error] of await pipeline.exec()) if (error) throw error;
  }
  answer({ seconds: (now() - from) / 1000 });
}

main().catch(e => { console.error(e); process.exit(1); });
