// Package grpcmw limits, hedges and retries the calls of a gRPC client.
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
//				"retryableStatusCodes": ["UNAVAILABLE"]
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
package grpcmw
