// Has the official clients do a streamed tool loop of two steps against a
// gateway: the model asks for the weather, passes what it was told on to a second
// tool, and ends with what that one said. Both tools answer with random words, so
// an answer can't be right unless everything went through.
//
//   node loop.mjs GATEWAY_URL TOKEN
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, stepCountIs, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod';
import { z } from 'zod';

const [url, token] = process.argv.slice(2);
const baseURL = `${url}/v1`;
const question = 'Please tell me what to wear.';
const client = new OpenAI({ baseURL, apiKey: token, maxRetries: 0 });

const described = {
  weather: { description: 'The weather of a city.', argument: 'city' },
  clothes: { description: 'What to wear in a weather.', argument: 'weather' },
};
const parameters = (argument) => ({
  type: 'object', properties: { [argument]: { type: 'string' } }, required: [argument], additionalProperties: false,
});
const chatTools = Object.entries(described).map(([name, d]) => ({
  type: 'function', function: { name, description: d.description, parameters: parameters(d.argument) },
}));
const flatTools = chatTools.map((t) => ({ type: 'function', strict: true, ...t.function }));

// day is one question's tools, and what must come of them.
function day() {
  const words = { weather: `weather-${randomUUID()}`, clothes: `clothes-${randomUUID()}` };
  const called = [];
  return {
    run(name, args) {
      called.push([name, args]);
      return words[name];
    },
    check(text, pieces) {
      assert.deepEqual(called, [['weather', { city: 'Berlin' }], ['clothes', { weather: words.weather }]]);
      assert.ok(text.includes(`Take this: ${words.clothes}. Have a nice day`), text);
      assert.ok(pieces > 1, `the answer came in ${pieces} pieces`);
    },
  };
}

const clients = {
  async 'openai: chat.completions.stream'() {
    const d = day();
    const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: question }];
    for (const step of [1, 2, 3]) {
      const stream = client.chat.completions.stream({
        model: 'goclaw', messages, tools: chatTools, stream_options: { include_usage: true },
      });
      let pieces = 0;
      stream.on('content', () => pieces++);
      const done = await stream.finalChatCompletion();
      const { message, finish_reason: finish } = done.choices[0];
      assert.ok(done.usage.total_tokens > 0);
      messages.push(message);
      if (step === 3) {
        assert.equal(finish, 'stop');
        return d.check(message.content, pieces);
      }
      assert.equal(finish, 'tool_calls');
      for (const call of message.tool_calls) {
        assert.ok(call.id.length <= 64, call.id);
        messages.push({ role: 'tool', tool_call_id: call.id, content: d.run(call.function.name, JSON.parse(call.function.arguments)) });
      }
    }
  },

  async 'openai: chat.completions.runTools'() {
    const d = day();
    const runner = client.chat.completions.runTools({
      model: 'goclaw/main', stream: true, messages: [{ role: 'user', content: question }],
      tools: chatTools.map((t) => ({
        type: 'function',
        function: { ...t.function, parse: JSON.parse, function: (args) => d.run(t.function.name, args) },
      })),
    });
    let pieces = 0;
    runner.on('content', () => pieces++);
    d.check(await runner.finalContent(), pieces);
  },

  async 'openai: responses.stream, by previous_response_id'() {
    await respond(false);
  },

  async 'openai: responses.stream, with the whole conversation'() {
    await respond(true);
  },

  async 'ai with @ai-sdk/openai-compatible'() {
    const provider = createOpenAICompatible({ name: 'goclaw', baseURL, apiKey: token, includeUsage: true });
    await stream(provider.chatModel('goclaw'));
  },

  async 'ai with @ai-sdk/openai: chat'() {
    await stream(createOpenAI({ baseURL, apiKey: token }).chat('goclaw'));
  },

  async 'ai with @ai-sdk/openai: responses'() {
    await stream(createOpenAI({ baseURL, apiKey: token }).responses('goclaw'));
  },

  async 'ai with @ai-sdk/openai: responses that are not stored'() {
    await stream(createOpenAI({ baseURL, apiKey: token }).responses('goclaw'), { openai: { store: false } });
  },
};

// Answers of a form, and calls that must be made: the model does neither until
// the gateway insists.
const person = z.object({ name: z.string(), age: z.number() });
const ann = { name: 'Ann', age: 7 };
const models = {
  compatible: createOpenAICompatible({ name: 'goclaw', baseURL, apiKey: token, supportsStructuredOutputs: true }).chatModel('goclaw'),
  chat: createOpenAI({ baseURL, apiKey: token }).chat('goclaw'),
  responses: createOpenAI({ baseURL, apiKey: token }).responses('goclaw'),
};

clients['openai: chat.completions.parse'] = async () => {
  const done = await client.chat.completions.parse({
    model: 'goclaw', messages: [{ role: 'user', content: 'Who is that?' }], response_format: zodResponseFormat(person, 'person'),
  });
  assert.deepEqual(done.choices[0].message.parsed, ann);
};

clients['openai: responses.parse'] = async () => {
  const done = await client.responses.parse({ model: 'goclaw', input: 'Who is that?', text: { format: zodTextFormat(person, 'person') } });
  assert.deepEqual(done.output_parsed, ann);
};

for (const [name, model] of Object.entries(models)) {
  clients[`ai, ${name}: generateObject`] = async () => {
    assert.deepEqual((await generateObject({ model, schema: person, prompt: 'Who is that?', maxRetries: 0 })).object, ann);
  };

  clients[`ai, ${name}: a tool that must be called`] = async () => {
    const tools = Object.fromEntries(['weather', 'clothes'].map((name) => [name, tool({ inputSchema: z.object({ city: z.string().optional() }) })]));
    for (const toolChoice of ['required', { type: 'tool', toolName: 'weather' }]) {
      const done = await generateText({ model, prompt: 'Good morning.', tools, toolChoice, maxRetries: 0 });
      assert.deepEqual(done.toolCalls.map((call) => [call.toolName, call.input]), [['weather', { city: 'Berlin' }]]);
    }
  };
}

async function respond(whole) {
  const d = day();
  let input = [{ role: 'user', content: question }];
  let previous;
  for (const step of [1, 2, 3]) {
    const stream = client.responses.stream({
      model: 'goclaw', input, tools: flatTools, instructions: 'Be brief.', previous_response_id: previous,
    });
    let pieces = 0, events = 0;
    for await (const event of stream) {
      assert.equal(event.sequence_number, events++);
      if (event.type === 'response.output_text.delta') pieces++;
    }
    const done = await stream.finalResponse();
    assert.equal(done.status, 'completed');
    assert.ok(done.usage.total_tokens > 0);
    assert.equal((await client.responses.retrieve(done.id)).output_text, step === 2 ? '' : done.output_text);
    if (step === 3) return d.check(done.output_text, pieces);
    if (whole) input.push(...done.output);
    else [input, previous] = [[], done.id];
    for (const call of done.output.filter((item) => item.type === 'function_call')) {
      input.push({ type: 'function_call_output', call_id: call.call_id, output: d.run(call.name, JSON.parse(call.arguments)) });
    }
  }
}

async function stream(model, providerOptions) {
  const d = day();
  const tools = Object.fromEntries(Object.entries(described).map(([name, { description, argument }]) => [name, tool({
    description, inputSchema: z.object({ [argument]: z.string() }), execute: (args) => d.run(name, args),
  })]));
  const errors = [];
  const result = streamText({
    model, system: 'Be brief.', prompt: question, tools, stopWhen: stepCountIs(5), maxRetries: 0, providerOptions,
    onError: ({ error }) => errors.push(error),
  });
  let pieces = 0;
  for await (const part of result.fullStream) {
    if (part.type === 'start-step') pieces = 0;
    if (part.type === 'text-delta') pieces++;
    if (part.type === 'error') errors.push(part.error);
  }
  if (errors.length > 0) throw errors[0];
  const steps = await result.steps;
  assert.deepEqual(steps.map((s) => s.finishReason), ['tool-calls', 'tool-calls', 'stop']);
  assert.ok((await result.totalUsage).totalTokens > 0);
  d.check(await result.text, pieces);
}

const ids = (await client.models.list()).data.map((m) => m.id);
assert.deepEqual(ids.slice(0, 2), ['goclaw', 'goclaw/main']);
let failed = 0;
for (const [name, run] of Object.entries(clients)) {
  try {
    await run();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed++;
    console.log(`FAIL  ${name}\n`, error);
  }
}
process.exit(failed === 0 ? 0 : 1);
