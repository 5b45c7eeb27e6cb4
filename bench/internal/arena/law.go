package arena

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Law is how long a call takes if nothing is in its way, in seconds. A law may
// change over a phase: at is how much of the phase is over, from 0 to 1.
type Law interface {
	Draw(r *rand.Rand, at float64) float64
	// Mean is exact, since the ideal is made of it.
	Mean(at float64) float64
	// String describes the law as the table of scenarios does.
	String() string
}

// logNormal has the mean m, which may drift to another one, and the deviation
// sigma of its logarithm.
type logNormal struct{ from, to, sigma float64 }

func (l logNormal) Mean(at float64) float64 { return l.from + at*(l.to-l.from) }

func (l logNormal) Draw(r *rand.Rand, at float64) float64 {
	return l.Mean(at) * math.Exp(l.sigma*r.NormFloat64()-l.sigma*l.sigma/2)
}

func (l logNormal) String() string {
	if l.from != l.to {
		return fmt.Sprintf("logn(%g to %g ms, %g)", 1000*l.from, 1000*l.to, l.sigma)
	}
	return fmt.Sprintf("logn(%g ms, %g)", 1000*l.from, l.sigma)
}

// pareto has a heavy tail that is cut off at the longest. Mean is that without the
// cut in the name of the law, and the true one as its method.
type pareto struct{ alpha, mean, longest float64 }

func (p pareto) shortest() float64 { return p.mean * (p.alpha - 1) / p.alpha }

func (p pareto) Mean(float64) float64 {
	x := p.shortest()
	return p.mean - math.Pow(x, p.alpha)*math.Pow(p.longest, 1-p.alpha)/(p.alpha-1)
}

func (p pareto) Draw(r *rand.Rand, _ float64) float64 {
	return min(p.longest, p.shortest()*math.Pow(1-r.Float64(), -1/p.alpha))
}

func (p pareto) String() string {
	return fmt.Sprintf("Pareto(%g, mean %g ms, cap %g s)", p.alpha, 1000*p.mean, p.longest)
}

// mix is fast for most calls and slow for a share of them, either of them even
// within the spread.
type mix struct{ fast, slow, share, spread float64 }

func (m mix) Mean(float64) float64 { return m.fast + m.share*(m.slow-m.fast) }

func (m mix) Draw(r *rand.Rand, _ float64) float64 {
	s := m.fast
	if r.Float64() < m.share {
		s = m.slow
	}
	return s * (1 + m.spread*(2*r.Float64()-1))
}

func (m mix) String() string {
	return fmt.Sprintf("%g ms, %g %% %g ms, ±%g %%", 1000*m.fast, 100*m.share, 1000*m.slow, 100*m.spread)
}

// slower is a law with all times multiplied.
type slower struct {
	law    Law
	factor float64
}

func (s slower) Mean(at float64) float64               { return s.factor * s.law.Mean(at) }
func (s slower) Draw(r *rand.Rand, at float64) float64 { return s.factor * s.law.Draw(r, at) }
func (s slower) String() string                        { return fmt.Sprintf("%s × %g", s.law, s.factor) }
