package grpcmw_test

import (
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/grpcmw"
)

func ExampleParseServiceConfig() {
	config, err := grpcmw.ParseServiceConfig(`{
		"loadBalancingConfig": [{"round_robin": {}}],
		"methodConfig": [{
			"name": [{"service": "shop.Stock", "method": "ListWarehouses"}],
			"timeout": "2s",
			"waitForReady": true,
			"hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.05s", "nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL"]}
		}],
		"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := config.Method("/shop.Stock/ListWarehouses")
	fmt.Println(m.Timeout, m.Hedging.MaxAttempts, m.Hedging.Delay, m.Hedging.NonFatal)
	fmt.Println("for the channel:", config.ChannelJSON())

	_, err = grpcmw.ParseServiceConfig(`{"methodConfig": [{"name": [{}], "hedgingPolicy": {"maxAttempts": 1}}]}`)
	fmt.Println(err)
	// Output:
	// 2s 3 50ms [Internal Unavailable]
	// for the channel: {"loadBalancingConfig":[{"round_robin": {}}],"methodConfig":[{"name":[{"service": "shop.Stock", "method": "ListWarehouses"}],"waitForReady":true}]}
	// grpcmw: service config: methodConfig[0].hedgingPolicy.maxAttempts: 1 is below 2
}

func ExampleNewServiceConfig() {
	config, err := grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{
		Methods: []grpcmw.MethodConfig{{
			Names: []grpcmw.MethodName{{Service: "shop.Stock"}},
			Retry: &grpcmw.RetryPolicy{
				MaxAttempts:    4,
				InitialBackoff: 100 * time.Millisecond, MaxBackoff: time.Second, BackoffMultiplier: 2,
				Retryable: []codes.Code{codes.Unavailable},
			},
		}},
		Throttling: &grpcmw.Throttling{MaxTokens: 10, TokenRatio: 0.1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, ok := config.Method("/shop.Stock/GetStock")
	_, other := config.Method("/shop.Bill/Pay")
	fmt.Println(ok, other)

	_, err = grpcmw.NewServiceConfig(grpcmw.ServiceConfigOptions{Throttling: &grpcmw.Throttling{MaxTokens: 10}})
	fmt.Println(err)
	// Output:
	// true false
	// grpcmw: service config: Throttling.TokenRatio: 0 is not a number of at least 0.001
}
