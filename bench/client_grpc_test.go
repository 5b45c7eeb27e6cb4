package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/bench/internal/downstream"
)

// A channel to several replicas calls all of them.
func TestGRPCClientTakesEachReplica(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config := defaultSettings().service(variant{downstream.GRPC, cancelHonour})
	config.Replicas = 1
	var replicas [2]*downstream.Service
	var addresses []string
	for i := range replicas {
		var err error
		if replicas[i], err = downstream.Listen(config); err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, replicas[i].Addresses()...)
	}
	c, err := newGRPCClient(experiments()[0], &recorder{}, addresses)
	if err != nil {
		t.Fatal(err)
	}
	for call := uint64(0); ; call++ { // the second replica may be connected later
		if err := c.do(ctx, call); err != nil {
			t.Fatalf("call %d: %v; not every replica was called before", call, err)
		}
		first, _ := replicas[0].Log()
		second, _ := replicas[1].Log()
		if len(first) > 0 && len(second) > 0 {
			break
		}
	}
	if err := errors.Join(c.close(ctx), replicas[0].Close(), replicas[1].Close()); err != nil {
		t.Error(err)
	}
}
