package grpcmw_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/holdfast-go/holdfast/gradient"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/limiter"
)

func ExampleNewServer() {
	// A fixed limit of one, so that the example prints the same each time; a program
	// leaves ServerLimiter out.
	algorithm, err := gradient.NewFixed(1)
	if err != nil {
		panic(err)
	}
	one, err := limiter.New(limiter.Config{Algorithm: algorithm})
	if err != nil {
		panic(err)
	}
	server, err := grpcmw.NewServer(grpcmw.ServerLimiter(one))
	if err != nil {
		panic(err)
	}

	var conn *grpc.ClientConn
	call := func(method string) {
		err := conn.Invoke(context.Background(), method, &emptypb.Empty{}, &emptypb.Empty{})
		fmt.Printf("%s: %v\n", method, err)
	}
	// It serves all methods that are not registered, as a generated service would its own.
	handler := func(any, grpc.ServerStream) error {
		// While this one runs there is no permit for another.
		call("/shop.Stock/More")
		_, err := healthpb.NewHealthClient(conn).Check(context.Background(), &healthpb.HealthCheckRequest{})
		fmt.Println("health:", err)
		return nil
	}
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer(append(server.ServerOptions(), grpc.UnknownServiceHandler(handler))...)
	healthpb.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	defer s.Stop()

	conn, err = grpc.NewClient("passthrough:///shop", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, "/shop.Stock/Get")
	if err != nil {
		panic(err)
	}
	fmt.Println("/shop.Stock/Get:", stream.RecvMsg(&emptypb.Empty{}))
	// Output:
	// /shop.Stock/More: rpc error: code = ResourceExhausted desc = overloaded, try again later
	// health: <nil>
	// /shop.Stock/Get: EOF
}
