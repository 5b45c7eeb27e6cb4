package downstream

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// httpReplica returns how one replica serves HTTP, and how it is stopped.
func (s *Service) httpReplica() (serve func(net.Listener) error, closeServer func() error) {
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	return server.Serve, server.Close
}

// handler returns the handler of one replica, with slots of its own.
func (s *Service) handler() http.Handler {
	slots := s.slots()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		call, attempt, err := numbers(r.Header)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if err := s.visit(r.Context(), slots, call, attempt); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "done\n") // a client that has gone is no error
	})
}

// numbers reads the numbers of the call and the attempt.
func numbers(h http.Header) (call uint64, attempt int, err error) {
	call, err = strconv.ParseUint(h.Get(CallHeader), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", CallHeader, err)
	}
	text := h.Get(AttemptHeader)
	if text == "" {
		return call, 1, nil
	}
	attempt, err = strconv.Atoi(text)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", AttemptHeader, err)
	}
	return call, attempt, nil
}
