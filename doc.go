// Package holdfast is an adaptive concurrency limiter integrated with request
// hedging. A permit holds fast until the work it covers has truly ended.
//
// The package itself is empty; choose by what you wrap:
//
//   - httpmw for an outgoing http.Client: limited and hedged by one line; and for a server
//     whose handlers are to be limited;
//   - grpcmw for the same with gRPC, by the service configs of gRFC A6;
//   - hedgedlimit for any other call that may be sent twice;
//   - limiter for a worker pool or a call that is only to be limited;
//   - permit and gradient for the ledger and the limit algorithms alone;
//   - promlimit to see a limiter or a hedger in Prometheus.
package holdfast
