/*
Copyright The Kubernetes Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

// A downscale pod picker (KEP-3189) that removes the least busy workers first.
//
// It needs nothing but Node.js: 22.18 or later runs it as it is (node picker.ts), earlier ones run what
// tsc makes of it. The environment has its settings: PORT, 8080 by default, and TOKEN, which all
// requests must send as "Authorization: Bearer TOKEN" if it is set. Workers report how busy they are:
// curl -X PUT --data 0.7 http://picker:8080/load/NAMESPACE/POD
//
// Replace the function pick with your own rule.

import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Question {
  number_of_pods_requested: number;
  candidate_pods: string[];
}

interface Answer {
  chosen_pods: string[];
  tied_pods: string[];
}

const maxRequestBytes = 16 << 20; // The names of all pods of the largest clusters.

// By namespace and pod. A real picker also forgets pods that are gone.
const loads = new Map<string, number>();

// pick returns which of the candidates to remove, and which it cannot decide between.
function pick(namespace: string, question: Question): Answer {
  // A worker that has not reported may be busy.
  const load = (pod: string): number => loads.get(`${namespace}/${pod}`) ?? Infinity;
  const sorted = question.candidate_pods.map(load).sort((a, b) => (a === b ? 0 : a < b ? -1 : 1));
  const last = sorted[Math.min(question.number_of_pods_requested, sorted.length) - 1];
  return {
    chosen_pods: question.candidate_pods.filter((pod) => load(pod) < last),
    tied_pods: question.candidate_pods.filter((pod) => load(pod) === last),
  };
}

class Refusal extends Error {
  status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

function parseQuestion(body: string): Question {
  let question: Question;
  try {
    question = JSON.parse(body);
  } catch {
    throw new Refusal(400, 'no JSON');
  }
  const pods = question?.candidate_pods;
  if (!Array.isArray(pods) || pods.length === 0 || !pods.every((pod) => typeof pod === 'string')) {
    throw new Refusal(400, 'candidate_pods must name pods');
  }
  if (!Number.isInteger(question.number_of_pods_requested) || question.number_of_pods_requested < 1) {
    throw new Refusal(400, 'number_of_pods_requested must be at least 1');
  }
  return question;
}

// isSame compares in constant time, so that the time of the answer does not say how much is right.
function isSame(a: string, b: string): boolean {
  const hash = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

async function read(request: IncomingMessage, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > limit) throw new Refusal(413, `the body has more than ${limit} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function handle(request: IncomingMessage): Promise<string | Answer> {
  const token = process.env.TOKEN;
  if (token && !isSame(request.headers.authorization ?? '', `Bearer ${token}`)) {
    throw new Refusal(401, 'wrong token');
  }
  if (request.method === 'POST') {
    const question = parseQuestion(await read(request, maxRequestBytes));
    // It may be asked again about the same pods, so it must change nothing.
    return pick(String(request.headers['kubernetes-namespace'] ?? ''), question);
  }
  const worker = /^\/load\/([^/]+\/[^/]+)$/.exec(request.url ?? '');
  if (request.method !== 'PUT' || !worker) throw new Refusal(400, 'POST a question, or PUT /load/NAMESPACE/POD');
  const body = await read(request, 64);
  const load = Number(body);
  if (body.trim() === '' || !Number.isFinite(load)) throw new Refusal(400, 'the load must be a finite number');
  loads.set(worker[1], load);
  return 'ok';
}

const server = createServer((request, response) => {
  handle(request).then(
    (answer) => {
      const isText = typeof answer === 'string';
      response.writeHead(200, { 'Content-Type': isText ? 'text/plain' : 'application/json' });
      response.end(isText ? answer : JSON.stringify(answer));
    },
    (error: unknown) => {
      const status = error instanceof Refusal ? error.status : 500;
      response.writeHead(status, { 'Content-Type': 'text/plain', Connection: 'close' });
      response.end(error instanceof Error ? error.message : String(error));
    },
  );
});
server.requestTimeout = 10_000;
server.listen(Number(process.env.PORT ?? 8080), () => {
  console.log(`listening on port ${(server.address() as AddressInfo).port}`);
});
