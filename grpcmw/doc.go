// Package grpcmw limits, hedges and retries the calls of a gRPC client, and limits how many
// handlers a gRPC server runs at once; see Servers below. Only methods that a service config,
// Hedgeable or HedgeStreams names are sent more than once: whatever must not be done twice is
// sent once.
//
//	options, err := grpcmw.DialOptions(grpcmw.WithServiceConfig(config))
//	…
//	conn, err := grpc.NewClient(target, append(options, credentials)...)
//
// Each attempt, first, hedge or retry, is one call of package hedgedlimit and holds a permit
// of its target's limiter until the RPC has ended.
//
// # Service configs
//
// A service config says which methods are hedged and which are retried. It comes from a
// JSON document, by ParseServiceConfig, or from Go, by NewServiceConfig:
//
//	config, err := grpcmw.ParseServiceConfig(`{
//		"methodConfig": [{
//			"name": [{"service": "shop.Stock", "method": "GetStock"}],
//			"timeout": "2s",
//			"retryPolicy": {
//				"maxAttempts": 4, "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 2,
//				"retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]
//			}
//		}, {
//			"name": [{"service": "shop.Stock", "method": "ListWarehouses"}],
//			"hedgingPolicy": {
//				"maxAttempts": 3, "hedgingDelay": "0.05s",
//				"nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]
//			}
//		}],
//		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
//	}`)
//
// The rules are those of gRFC A6. grpc-go obeys a retryPolicy and ignores a
// hedgingPolicy, without a word and even if it makes no sense; here both are obeyed, and
// what makes no sense is an error that names its place. Where A6 leaves a choice, or
// gRPC's implementations differ:
//
//   - More than five attempts are five. A delay that is left out is none.
//   - Status codes are numbers, or names in upper or lower case. OK is not among them.
//   - A tokenRatio is cut to three decimals, and the decimal text decides; maxTokens may
//     have three.
//   - Negative durations and a timeout of 0 are errors.
//   - A methodConfig without a name is checked and applies to nothing.
//
// # Which config is obeyed
//
// Only the one that is handed to this package. A service config that a resolver supplies
// goes to the channel, and its hedgingPolicy is ignored there.
//
// One config must not be obeyed twice. A channel applies a timeout and a retryPolicy
// below the interceptors, to each attempt by itself, without a permit and beyond the
// caller's count. So the channel is handed ServiceConfig.ChannelJSON, which has neither;
// wait-for-ready, message sizes, load balancing and health checks are in it, and are the
// channel's as ever.
//
// The most specific config of a method applies as a whole: that of the method, else that
// of its service, else the default.
//
// IdempotentMethods finds the methods that may be carried out many times by what their
// authors wrote into the .proto file.
//
// # What is whose
//
// This package obeys the hedgingPolicy, the retryPolicy, the retryThrottling and the timeout
// of the config that it is given. The channel goes on with what is below an attempt:
//
//   - Transparent retries, of what never reached the application of a server. The permit of
//     the attempt covers them, and the StatsHandler counts them apart.
//   - The pick of a connection, anew for each attempt; distinct backends are not promised.
//   - The drops of a load balancer, which are failures with their code here.
//   - The buffer of what was sent: without the channel's retries it keeps what transparent
//     retries need. A unary request and that of a server's stream are kept here, whole.
//
// # Where A6 is not followed
//
// By the table of gRFC A6, response headers commit a call. A unary call is committed here by
// its answer: a server that sends the headers of a unary call early does not keep hedges back,
// but a failure after them is the call's. The other differences are:
//
//   - A6 lets each pushback replace the time of the next attempt, and a failure without one
//     send it now. Here the pushback that ends last counts, and nothing cuts its wait short.
//   - A hedge that is throttled when it is due is not dropped for good: the throttle is asked
//     again after the delay.
//   - A drop by a load balancer fails an attempt with its code, which a policy may name; A6
//     sends no further attempt then.
//   - Of the requests of a stream only that of a server's stream is kept, whole; there is no
//     buffer to overflow.
//
// # What an attempt gets
//
// Each attempt of a unary call has a copy of the request, a reply of its own, and its own
// cells for Header, Trailer and Peer. When the call is decided, the winner's reply is moved
// into the caller's, and what the options point to is written once: the winner's, or if all
// have failed that of the attempt whose status is returned. A failed call leaves the reply
// alone. OnFinish is called once, with what the call returns. From its return on, the
// request, the reply and the options are the caller's again, though losers may still run.
// Messages of proto are known in calls with the codec of that name. With another
// content subtype or a forced codec, they and messages of proto's old API, need WithMessages; without
// it their calls are sent once, and counted as unhedgeable.
//
// The server finds the number of the attempts before this one in the metadata
// grpc-previous-rpc-attempts, from the second on. A number that the caller's metadata has, as
// a proxy may pass it on, is taken out of every call.
//
// A call that an interceptor inside makes within an attempt, to fetch a token, say, has
// attempts of its own. If it is the same method of the same target, the attempts of both are
// counted together, as package hedgedlimit does with calls within calls.
//
// A method without a policy costs no goroutine and no copy: its call runs under a permit in
// the caller's goroutine.
//
// # Errors
//
//	RESOURCE_EXHAUSTED, limiter.ErrLimitExceeded     no permit was to be had; nothing was sent
//	UNAVAILABLE, limiter.ErrClosed                   the Client was closed; nothing was sent
//	CANCELLED, context.Canceled                      the caller's context
//	DEADLINE_EXCEEDED, context.DeadlineExceeded      the caller's, the timeout of the method, or
//	                                                 the share of it that DeadlineFraction gives
//	any other                                        the attempt's own error, with its details
//	*AttemptsError                                   several attempts failed
//
// errors.Is finds the second column. A status of the server, such as its own CANCELLED, has
// none of them, and neither has an error of a stream that is sent once, which is gRPC's own.
//
// For the limit UNAVAILABLE and RESOURCE_EXHAUSTED are overload, DEADLINE_EXCEEDED is expired,
// and every other answer is a success: a server that says NOT_FOUND works well. A message
// that is too long for this side teaches nothing, as far as the StatsHandler can tell.
//
// # Streams
//
// A stream holds one permit from before it is opened until it has ended: when RecvMsg has
// returned an error or io.EOF, or the only reply of a client's stream, when the context ends,
// the channel is closed, SendMsg or Header fail, or Header tells that there are no headers. So
// a stream that nobody receives from to its end, and whose context never ends, keeps its
// permit, as it keeps a goroutine of gRPC. When RecvMsg has returned the end, what the call
// options point to is there. OnFinish is told once, when the permit is back. How long a stream
// runs is no latency; of streams only a refusal teaches the limit.
//
// An interceptor inside may open several streams, one after the other, in place of one: the
// permit is that of the stream which it returns. What it leaves open when that ends is
// cancelled. It must pass the call options on, since gRPC tells of the end of an RPC by
// OnFinish. Two things are not covered: several RPCs at a time hold one permit together, and
// one that is opened after Header has told that there are no headers holds none. Without the
// StatsHandler a stream that an interceptor makes up ends by what it returns, and not with its
// context.
//
// A server's stream with a retryPolicy is retried until the response headers are there, and
// with HedgeStreams it is hedged until then. It begins when its request is sent, and all that
// may go wrong, a refusal by the limit included, is told by RecvMsg. The caller gets the
// messages of one attempt and of no other. Before its request a stream ends with its context,
// and with the channel if somebody waits for it: nobody else looks. A request of a type that
// is not known goes out within SendMsg, which then waits for a permit. Streams of clients are never sent again, here or,
// under DialOptions, by the channel.
//
// # Connections
//
// A channel with one address has one HTTP/2 connection. A hedge that takes the connection on
// which the first attempt is stuck, by a lost packet or a full window, is stuck behind it and
// cannot win: hedging helps against slow servers, and against slow connections only if there
// are several, by a load balancing policy such as round_robin over more than one backend. Two
// to four channels to one address are enough where that is not to be had. A server may bound
// the streams of a connection, often at 100; attempts beyond it wait in the channel, where
// they hold their permits, and a limit that adapts will come to know it.
//
// # Servers
//
// A [Server] limits how many handlers of a grpc.Server run at once, by a limit that follows
// what the server itself can do:
//
//	server, err := grpcmw.NewServer()
//	…
//	s := grpc.NewServer(server.ServerOptions()...)
//
// A permit is held until the handler has returned or panicked, whatever the client does;
// its latency is the time from the permit until then. A call that finds no permit waits for
// one, as far as the limiter allows, or is refused: RESOURCE_EXHAUSTED with a constant
// message and the trailer grpc-retry-pushback-ms, which clients that retry obey ([Pushback]).
// A deadline that cannot be met is refused at once. Hedges and retries that say so by
// grpc-previous-rpc-attempts, as gRPC's own do, are refused first: they never wait, leave
// the limiter's reserve to others, and are a share of all calls at most while half of the
// permits are in use ([MaxExtra]). Their status is UNAVAILABLE then. A client goes on after a
// refusal only if its service config names the code: without UNAVAILABLE among the
// nonFatalStatusCodes a refused hedge ends the call whose first attempt is being served, and
// without RESOURCE_EXHAUSTED among the retryableStatusCodes a refused call is not retried.
//
// By what a handler does the limit learns as follows; [Report] overrides it.
//
//	it returns, with or without an error               Success
//	its error is RESOURCE_EXHAUSTED or UNAVAILABLE     Ignored
//	a deadline passes that an interceptor outside set  Expired
//	the client leaves, or its own deadline passes      Canceled
//	a panic, runtime.Goexit                            Ignored
//	the method streams, in either direction            Ignored
//
// How long a stream is open says nothing about the server, so a server of nothing but
// streams stays at the limit that it began with: give it one with [ServerLimiter], or
// [Report] Success in those whose duration is the work.
//
// gRPC's own services for health checks and reflection need no permit; [Exempt] adds others.
// Put the Server inside of what logs and counts, so that refusals are seen there. What they
// see is in [Refusals] too, and tells the reasons apart:
//
//	no room, no time to wait            RESOURCE_EXHAUSTED, limiter.ErrLimitExceeded
//	no hedge or retry now               UNAVAILABLE, limiter.ErrLimitExceeded
//	the client has left in the queue    CANCELLED, context.Canceled
//	the deadline passed in the queue    DEADLINE_EXCEEDED, context.DeadlineExceeded
//	the Server is closed                UNAVAILABLE, limiter.ErrClosed
//
// grpc-go reads and decodes the request of a unary call before any interceptor sees it: a
// refusal saves the work of the handler, not of that. grpc.MaxConcurrentStreams bounds what
// one connection can have in that stage.
package grpcmw
