/** nginx as the reference: one worker process that proxies to the simulated workers. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { childPids, freePort, startChild, temporaryDirectory, waitUntil } from './process.ts'
import type { Subject } from './subject.ts'

/** @throws if nginx is not installed, with the package to install */
function requireNginx(): void {
  try {
    execFileSync('nginx', ['-v'], { stdio: 'ignore' })
  } catch {
    throw new Error('nginx is missing: install it with "apt-get install nginx-light"')
  }
}

function configText(directory: string, port: number, workerPorts: readonly number[]): string {
  const servers = workerPorts.map((workerPort) => `server 127.0.0.1:${workerPort};`).join(' ')
  return `daemon off;
worker_processes 1;
worker_rlimit_nofile 20000;
pid ${directory}/nginx.pid;
error_log ${directory}/error.log warn;
events { worker_connections 19000; }
http {
  access_log off;
  client_body_temp_path ${directory}/body;
  proxy_temp_path ${directory}/proxy;
  fastcgi_temp_path ${directory}/fastcgi;
  uwsgi_temp_path ${directory}/uwsgi;
  scgi_temp_path ${directory}/scgi;
  client_body_buffer_size 2m;
  client_max_body_size 64m;
  keepalive_requests 1000000000;
  upstream worker {
    ${servers}
    keepalive 512;
    keepalive_requests 1000000000;
  }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://worker;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
    }
  }
}
`
}

export async function startNginx(workerPorts: readonly number[]): Promise<Subject> {
  requireNginx()
  const directory = temporaryDirectory()
  const port = await freePort()
  writeFileSync(join(directory, 'nginx.conf'), configText(directory, port, workerPorts))
  const master = startChild('nginx', ['-p', directory, '-c', join(directory, 'nginx.conf')])
  await waitUntil('nginx is ready', 5_000, async () => (await fetch(`http://127.0.0.1:${port}/health`)).ok)
  return { name: 'nginx', port, pid: childPids(master.pid)[0], stop: () => master.stop() }
}
