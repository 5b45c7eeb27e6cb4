package storm

import "fmt"

// Settings are the constants of all rows. Times are seconds.
type Settings struct {
	Capacity, Load, Timeout, Start, Outage, Length int
	// Layers × Tries are the attempts of a call: Tries to the power of Layers.
	Layers, Tries int
	// Budget is that of most rows that have one; each of the others is of one row or two.
	Budget, HighBudget float64
	HighLoad           int
	Blip               int
	MaxQueue           int
	Backoff            Backoff
	Herd               int
	DeepLayers         int
	Marked             float64
}

// Defaults returns the settings that the targets are for.
func Defaults() Settings {
	return Settings{
		Capacity: 100, Load: 70, Timeout: 1, Start: 60, Outage: 30, Length: 3600,
		Layers: 3, Tries: 3, Budget: 0.1, HighBudget: 0.2, HighLoad: 90, Blip: 5, MaxQueue: 500,
		// 1, 2, 4 … 32 seconds: 27 attempts take 13 minutes at most.
		Backoff: Backoff{Initial: 1, Multiplier: 2, Max: 32},
		Herd:    30, DeepLayers: 5,
		Marked: 0.1, // the default of the servers of httpmw and grpcmw
	}
}

// Bounds of a setting. Beyond them a row would take memory or hours.
const (
	MaxRate     = 10_000
	MaxLength   = 24 * 3600
	MaxAttempts = 1000
	// maxBatches is attempts × length: what the queue may have to keep apart.
	maxBatches = 5_000_000
	// maxOneByOne attempts of a row take a minute.
	maxOneByOne = 50_000_000
)

// attempts is tries to the power of layers, and MaxAttempts+1 if it is more than MaxAttempts.
func attempts(layers, tries int) int {
	n := 1
	for range layers {
		if n *= tries; n > MaxAttempts {
			return MaxAttempts + 1
		}
	}
	return n
}

// Validate names the first setting that makes no sense as name calls it, with its value.
// Fields alone are checked before what they come to together.
func (s *Settings) Validate(name func(field any) string) error {
	for _, x := range []struct {
		field       *int
		least, most int
		unit        string
	}{
		{&s.Capacity, 1, MaxRate, ""},
		{&s.Load, 1, MaxRate, ""},
		{&s.HighLoad, 1, MaxRate, ""},
		{&s.Length, 1, MaxLength, "s"},
		{&s.Timeout, 1, MaxLength, "s"},
		{&s.Start, 0, MaxLength, "s"},
		{&s.Outage, 0, MaxLength, "s"},
		{&s.Blip, 0, MaxLength, "s"},
		{&s.Herd, 1, MaxLength, "s"},
		{&s.Layers, 1, 9, ""},
		{&s.DeepLayers, 1, 9, ""},
		{&s.Tries, 1, MaxAttempts, ""},
		{&s.MaxQueue, 1, 1e9, ""},
		{&s.Backoff.Initial, 0, 3600, "s"},
		{&s.Backoff.Multiplier, 1, 10, ""},
		{&s.Backoff.Max, 0, 3600, "s"},
	} {
		if *x.field < x.least || *x.field > x.most {
			return fmt.Errorf("%s %d%s is not between %d%s and %d%s", name(x.field), *x.field, x.unit, x.least, x.unit, x.most, x.unit)
		}
	}
	for _, x := range []*float64{&s.Budget, &s.HighBudget, &s.Marked} {
		if !(*x > 0 && *x <= 1) {
			return fmt.Errorf("%s %v is not above 0 and at most 1", name(x), *x)
		}
	}
	for _, layers := range []*int{&s.Layers, &s.DeepLayers} {
		switch n := attempts(*layers, s.Tries); {
		case n > MaxAttempts:
			return fmt.Errorf("%s %d with %s %d makes more than %d attempts", name(layers), *layers, name(&s.Tries), s.Tries, MaxAttempts)
		case n*s.Length > maxBatches:
			return fmt.Errorf("%s %d with %s %d makes %d attempts, too many for %s %ds", name(layers), *layers, name(&s.Tries), s.Tries, n, name(&s.Length), s.Length)
		}
	}
	if s.Backoff.Max < s.Backoff.Initial {
		return fmt.Errorf("%s %ds is less than %s %ds", name(&s.Backoff.Max), s.Backoff.Max, name(&s.Backoff.Initial), s.Backoff.Initial)
	}
	for _, outage := range []*int{&s.Outage, &s.Blip} {
		if s.Start+*outage >= s.Length {
			return fmt.Errorf("%s %ds and %s %ds leave nothing of %s %ds", name(&s.Start), s.Start, name(outage), *outage, name(&s.Length), s.Length)
		}
	}
	if s.Herd > s.Length {
		return fmt.Errorf("%s %ds is longer than %s %ds", name(&s.Herd), s.Herd, name(&s.Length), s.Length)
	}
	return nil
}

// Bound names, as Validate does, the settings that would have one of the rows take more than a
// minute or so. The rows are those of s, or some of them.
func (s *Settings) Bound(rows []Row, name func(field any) string) error {
	for i := range rows {
		r := &rows[i]
		n := r.oneByOne()
		if n <= maxOneByOne {
			continue
		}
		load := &s.Load
		if r.Name == highLoad {
			load = &s.HighLoad
		}
		return fmt.Errorf("%s %d for %s %ds, with %s %d of %s %d, makes up to %.0f attempts in the row %q, more than %d",
			name(load), *load, name(&s.Length), s.Length, name(&s.Layers), s.Layers, name(&s.Tries), s.Tries, n, r.Name, maxOneByOne)
	}
	return nil
}
