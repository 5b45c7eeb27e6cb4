// The other side, by @grpc/grpc-js. Messages are bytes to it.
//
//   node peer.js server               serves, prints its port and then each call's end
//   node peer.js client PORT CONFIG   makes the calls that it reads, a JSON document a line,
//                                     and prints how each of them ended
'use strict';
const grpc = require('@grpc/grpc-js');
const readline = require('readline');

const bytes = (b) => b;
const method = (name, responseStream) => ({
  path: '/shop.Stock/' + name, requestStream: false, responseStream,
  requestSerialize: bytes, requestDeserialize: bytes, responseSerialize: bytes, responseDeserialize: bytes,
});
const service = {Get: method('Get', false), List: method('List', true)};
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n');

// answer follows the script in a call's metadata: a list with what each attempt gets.
function answer(call, succeed, fail) {
  const previous = call.metadata.get('grpc-previous-rpc-attempts');
  const record = {call: call.metadata.get('call')[0], previous, at: Date.now(), cancelled: false};
  const script = JSON.parse(call.metadata.get('script')[0]);
  const step = script[Math.min(Number(previous[0] || 0), script.length - 1)];
  let answered = false;
  const timer = setTimeout(() => {
    answered = true;
    const trailer = new grpc.Metadata();
    if (step.pushback !== undefined) trailer.set('grpc-retry-pushback-ms', step.pushback);
    if (step.code) fail({code: step.code, details: 'as the script says', metadata: trailer});
    else succeed();
    print(record);
  }, step.after || 0);
  call.on('cancelled', () => {
    if (answered) return; // it is said of a stream that was closed in good order, too
    clearTimeout(timer);
    print({...record, cancelled: true});
  });
}

function serve() {
  const server = new grpc.Server();
  server.addService(service, {
    Get: (call, done) => answer(call, () => done(null, call.request), (error) => done(error)),
    List: (call) => answer(call, () => { call.write(call.request); call.end(); }, (error) => call.emit('error', error)),
  });
  server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    print({port});
  });
  process.stdin.on('end', () => process.exit(0)).resume(); // whoever has started it is gone
}

function call(port, config) {
  const Client = grpc.makeGenericClientConstructor(service);
  const client = new Client('127.0.0.1:' + port, grpc.credentials.createInsecure(), {'grpc.service_config': config});
  readline.createInterface({input: process.stdin}).on('line', (line) => {
    const {method} = JSON.parse(line);
    const end = (error) => print({code: error ? error.code : 0, details: error ? error.details : ''});
    if (method === 'Get') {
      client.Get(Buffer.alloc(0), end);
      return;
    }
    const stream = client.List(Buffer.alloc(0));
    stream.on('data', () => {}).on('error', end).on('end', () => end(null));
  }).on('close', () => client.close());
}

if (process.argv[2] === 'server') serve();
else call(process.argv[3], process.argv[4]);
