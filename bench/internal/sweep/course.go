package sweep

import "slices"

// Peaks returns the most intervals that overlap in each of n steps, of which the first begins
// at start. An interval belongs to each step that it touches; one that ends in the instant in
// which another begins does not overlap it.
func Peaks(list []Interval, start, step int64, n int) []int {
	starts := make([]int64, 0, len(list))
	ends := make([]int64, 0, len(list))
	for _, i := range list {
		starts = append(starts, i.Start)
		ends = append(ends, i.End)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	peaks := make([]int, n)
	begun, over := 0, 0
	for k := range peaks {
		from, to := start+int64(k)*step, start+int64(k+1)*step
		for over < len(ends) && ends[over] <= from {
			over++
		}
		for begun < len(starts) && starts[begun] <= from {
			begun++
		}
		peaks[k] = begun - over // of those before
		for begun < len(starts) && starts[begun] < to {
			for over < len(ends) && ends[over] <= starts[begun] {
				over++
			}
			begun++
			peaks[k] = max(peaks[k], begun-over)
		}
	}
	return peaks
}
