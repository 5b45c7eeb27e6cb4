package main

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// grpcService is the service config of a channel to replicas: each attempt goes to the
// next one.
const grpcService = `{"loadBalancingConfig": [{"round_robin": {}}]}`

// grpcClient makes the calls of one row over gRPC, through grpcmw.
type grpcClient struct {
	channel *grpc.ClientConn
	client  *grpcmw.Client
}

func newGRPCClient(e experiment, rec *recorder, addresses []string) (client, error) {
	config, err := grpcmw.ParseServiceConfig(grpcService)
	if err != nil {
		return nil, err
	}
	c, err := grpcmw.NewClient(
		grpcmw.WithServiceConfig(config),
		grpcmw.WithConfig(e.configure(rec)),
		grpcmw.Hedgeable(downstream.Method),
	)
	if err != nil {
		return nil, err
	}
	replicas := manual.NewBuilderWithScheme("replicas")
	var state resolver.State
	for _, address := range addresses {
		state.Endpoints = append(state.Endpoints, resolver.Endpoint{Addresses: []resolver.Address{{Addr: address}}})
	}
	replicas.InitialState(state)
	channel, err := grpc.NewClient(replicas.Scheme()+":///downstream.test", append(c.DialOptions(),
		grpc.WithChainUnaryInterceptor(rec.underWay.intercept), // after those, so inside: once for each attempt
		grpc.WithResolvers(replicas),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithNoProxy(), // the environment must not send loopback traffic elsewhere
	)...)
	if err != nil {
		return nil, err
	}
	return &grpcClient{channel, c}, nil
}

func (c *grpcClient) do(ctx context.Context, call uint64) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.channel.Invoke(ctx, downstream.Method, wrapperspb.UInt64(call), new(emptypb.Empty))
}

func (c *grpcClient) stats() clientStats {
	if targets := c.client.Stats().Targets; len(targets) > 0 {
		return clientStats{targets[0].Limiter, targets[0].Hedging[0].Unary} // the first hedger is that of Hedgeable
	}
	return clientStats{}
}

func (c *grpcClient) close(ctx context.Context) error {
	err := c.client.Close(ctx)
	return errors.Join(err, c.channel.Close())
}
