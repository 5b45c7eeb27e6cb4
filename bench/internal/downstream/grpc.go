package downstream

import (
	"context"
	"net"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// Method is what the service is called by over gRPC: its request is a UInt64Value
	// with the number of the call, its reply an Empty.
	Method = "/" + grpcService + "/Work"

	grpcService = "holdfast.bench.Downstream"

	// previousAttempts is how many attempts of a call came before, as gRFC A6 has it.
	previousAttempts = "grpc-previous-rpc-attempts"
)

// grpcReplica returns how one replica serves gRPC, with slots of its own, and how it is
// stopped.
func (s *Service) grpcReplica() (serve func(net.Listener) error, closeServer func() error) {
	slots := s.slots()
	server := grpc.NewServer()
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: grpcService,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{
			MethodName: "Work",
			Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				call := new(wrapperspb.UInt64Value)
				if err := decode(call); err != nil {
					return nil, err
				}
				attempt, err := attemptOf(ctx)
				if err != nil {
					return nil, err
				}
				if err := s.visit(ctx, slots, call.GetValue(), attempt); err != nil {
					return nil, status.FromContextError(err).Err()
				}
				return new(emptypb.Empty), nil
			},
		}},
	}, nil)
	return server.Serve, func() error {
		server.Stop()
		return nil
	}
}

// attemptOf reads the number of the attempt, which is 1 if the client says nothing.
func attemptOf(ctx context.Context) (int, error) {
	values := metadata.ValueFromIncomingContext(ctx, previousAttempts)
	if len(values) == 0 {
		return 1, nil
	}
	previous, err := strconv.Atoi(values[0])
	if err != nil {
		return 0, status.Errorf(codes.InvalidArgument, "%s: %v", previousAttempts, err)
	}
	return previous + 1, nil
}
