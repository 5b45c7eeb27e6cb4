// Command interop lets a Client and a Server of grpcmw talk with @grpc/grpc-js, an
// implementation of gRPC that shares no code with grpc-go. It is run by run.sh, which has
// what it needs installed, from the root of the module.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"our client against their server", ourClient},
		{"their client against our server", ourServer},
	} {
		fmt.Println(part.name)
		if err := part.run(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "interop: %s: %v\n", part.name, err)
			os.Exit(1)
		}
	}
}

// peer is a process of peer.js, to which lines of JSON are written and read.
type peer struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
}

// startPeer starts one. It ends with ctx, or by stop.
func startPeer(ctx context.Context, args ...string) (*peer, error) {
	p := &peer{command: exec.CommandContext(ctx, "node", append([]string{"grpcmw/interop/peer.js"}, args...)...)}
	p.command.Stderr = os.Stderr
	var err error
	if p.in, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(out)
	return p, p.command.Start()
}

// stop closes the peer's input, upon which it ends.
func (p *peer) stop() error {
	if err := p.in.Close(); err != nil {
		return err
	}
	return p.command.Wait()
}

// tell writes one value.
func (p *peer) tell(v any) error { return json.NewEncoder(p.in).Encode(v) }

// hear reads the next value.
func (p *peer) hear(v any) error {
	if !p.out.Scan() {
		return fmt.Errorf("the peer has ended: %w", p.out.Err())
	}
	return json.Unmarshal(p.out.Bytes(), v)
}
