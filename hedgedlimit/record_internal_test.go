package hedgedlimit

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// What a call has left in its record must not reach the next one: not its gates' yes, not
// the pushback that froze it, not the function that disposes of results.
func TestRecordLeavesNothingToTheNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, err := New(Config{
			Delay: Fixed(time.Millisecond), Budget: Unlimited, MaxAttempts: 3, Observer: func(CallEvent) {},
			Pushback: func(error) (time.Duration, bool) { return -1, true },
			Rand:     func() float64 { return 0 },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			_, err := Do(t.Context(), h, func(_ context.Context, a Attempt) (int, error) {
				time.Sleep(time.Duration(3*a.Number()) * time.Millisecond)
				if a.Number() == 1 {
					return 1, errors.New("first")
				}
				return 2, nil
			}, Discard(func(int) {}))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			r, ok := h.records.Get().(*record[int])
			if !ok {
				continue // a pool may forget
			}
			clean := take[int](&Hedger{})
			// What belongs to the record and not to a call.
			clean.work, clean.hedger, clean.tick, clean.main, clean.primary.call = r.work, r.hedger, r.tick, r.main, r.primary.call
			clean.generation = r.generation
			got, want := reflect.ValueOf(r).Elem(), reflect.ValueOf(clean).Elem()
			compare(t, "record", got, want)
			return
		}
		t.Error("no record was used again: the test shows nothing")
	})
}

func compare(t *testing.T, name string, got, want reflect.Value) {
	t.Helper()
	if got.Kind() == reflect.Struct && got.Type().PkgPath() == reflect.TypeFor[call]().PkgPath() {
		for i := range got.NumField() {
			compare(t, name+"."+got.Type().Field(i).Name, got.Field(i), want.Field(i))
		}
		return
	}
	if got.Kind() == reflect.Func {
		if got.IsNil() != want.IsNil() {
			t.Errorf("%s is left over", name)
		}
		return
	}
	if got.IsZero() != want.IsZero() {
		t.Errorf("%s is %v, and %v in a new record", name, got, want)
	}
}

// Hold of an Attempt that was kept may be called while its record begins another call.
func TestKeptAttemptRacesWithNobody(t *testing.T) {
	h, err := New(Config{MaxAttempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	var kept Attempt
	run := func() {
		_, err := Do(context.Background(), h, func(_ context.Context, a Attempt) (int, error) { kept = a; return 0, nil })
		if err != nil {
			t.Error(err)
		}
	}
	run()
	old := kept
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 2000 {
			func() {
				defer func() { _ = recover() }()
				old.Hold()
			}()
		}
	}()
	for range 2000 {
		run()
	}
	<-done
}
