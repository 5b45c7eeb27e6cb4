// Package downstream is the service that the experiments call: some replicas on
// loopback, over HTTP or gRPC, with a bounded number of worker slots each, and with
// service times that are drawn from the number of the call, so that every experiment
// meets the same ones. It runs in a process of its own, which is this program executed
// once more, so that its CPU time and memory are not mixed with the client's.
//
// Main is the child's side, Start the parent's. They talk by lines of JSON over
// the child's standard input and output, and the child ends when its input does:
// a parent that is killed leaves nothing behind.
package downstream
