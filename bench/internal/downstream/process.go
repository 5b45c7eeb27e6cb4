package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// closeWithin is how long a child may take to end once its input has ended,
// before it is killed.
const closeWithin = 5 * time.Second

// Process is the parent's handle on a service in a child process. It must be made
// by Start, and is for one goroutine.
type Process struct {
	command   *exec.Cmd
	input     io.WriteCloser
	encoder   *json.Encoder
	decoder   *json.Decoder
	detach    func() bool // from the context of Start
	addresses []string
}

// Start executes this program once more as a service; its Main must do as IsChild
// says. The child ends with Close, with ctx, and with this process in whatever
// way. On error no process is left.
func Start(ctx context.Context, config Config) (*Process, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	p := &Process{command: exec.Command(program)}
	p.command.Env = append(os.Environ(), childEnv+"=1")
	p.command.Stderr = os.Stderr
	if p.input, err = p.command.StdinPipe(); err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	output, err := p.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	p.encoder, p.decoder = json.NewEncoder(p.input), json.NewDecoder(output)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("downstream: %w", err)
	}
	p.detach = context.AfterFunc(ctx, func() { _ = p.input.Close() }) // the child ends by that
	answer, err := p.ask(request{Config: &config})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.addresses = answer.Addresses
	return p, nil
}

// Addresses returns where the replicas listen.
func (p *Process) Addresses() []string { return p.addresses }

// Mark returns what the child has used so far.
func (p *Process) Mark() (Usage, error) {
	r, err := p.ask(request{Command: commandMark})
	if err != nil {
		return Usage{}, err
	}
	return r.Report.Usage, nil
}

// Report waits until no request is inside, and returns the log and the usage.
func (p *Process) Report() (*Report, error) {
	r, err := p.ask(request{Command: commandReport})
	if err != nil {
		return nil, err
	}
	return r.Report, nil
}

// ask sends one request and waits for its answer.
func (p *Process) ask(r request) (response, error) {
	var answer response
	if err := p.encoder.Encode(r); err != nil {
		return response{}, fmt.Errorf("downstream: the child does not listen: %w", err)
	}
	if err := p.decoder.Decode(&answer); err != nil {
		return response{}, fmt.Errorf("downstream: the child does not answer: %w", err)
	}
	switch {
	case answer.Error != "":
		return response{}, fmt.Errorf("downstream: the child says: %s", answer.Error)
	case r.Command != "" && answer.Report == nil:
		return response{}, fmt.Errorf("downstream: the child's answer to %q is empty", r.Command)
	}
	return answer, nil
}

// Close ends the child and waits for it. It returns an error if the child failed
// or had to be killed.
func (p *Process) Close() error {
	p.detach()
	_ = p.input.Close()                                                          // may be closed already
	kill := time.AfterFunc(closeWithin, func() { _ = p.command.Process.Kill() }) // Wait tells
	defer kill.Stop()
	if err := p.command.Wait(); err != nil {
		return fmt.Errorf("downstream: the child: %w", err)
	}
	return nil
}
