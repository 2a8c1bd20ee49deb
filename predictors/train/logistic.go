package train

import "math"

const (
	newtonSteps = 15
	converged   = 1e-4 // a step so small ends the search
)

// logistic fits a ridge regression of y, 0 or 1, on the n columns of x by Newton's method
// with halved steps. The bias is not penalised.
func logistic(x [][]float64, y []float64, n int, ridge float64) (bias float64, weight []float64) {
	w := make([]float64, n+1) // the last is the bias
	ones := 0.0
	for _, v := range y {
		ones += v
	}
	p0 := (ones + 0.5) / (float64(len(y)) + 1)
	w[n] = math.Log(p0 / (1 - p0))
	if ones == 0 {
		return w[n], w[:n]
	}
	cost := penalised(x, y, w, ridge)
	for range newtonSteps {
		step := newton(x, y, w, ridge)
		size := 1.0
		var next float64
		trial := make([]float64, n+1)
		for {
			for k := range w {
				trial[k] = w[k] + size*step[k]
			}
			if next = penalised(x, y, trial, ridge); next <= cost || size < 1e-3 {
				break
			}
			size /= 2
		}
		if next > cost {
			break
		}
		done := cost-next < converged*cost
		w, cost = trial, next
		if done {
			break
		}
	}
	return w[n], w[:n]
}

func logit(x, w []float64) float64 {
	s := w[len(x)]
	for k, v := range x {
		s += v * w[k]
	}
	return s
}

// penalised is the negative log likelihood with the penalty.
func penalised(x [][]float64, y, w []float64, ridge float64) float64 {
	sum := 0.0
	for i, row := range x {
		q := logit(row, w)
		if y[i] > 0 {
			q = -q
		}
		if q > 30 {
			sum += q
		} else {
			sum += math.Log1p(math.Exp(q))
		}
	}
	for _, v := range w[:len(w)-1] {
		sum += ridge / 2 * v * v
	}
	return sum
}

// newton returns the step to the minimum of the cost's quadratic approximation.
func newton(x [][]float64, y, w []float64, ridge float64) []float64 {
	d := len(w)
	n := d - 1
	a := make([][]float64, d) // the Hessian, and the negative gradient behind it
	for i := range a {
		a[i] = make([]float64, d+1)
	}
	for i, row := range x {
		p := 1 / (1 + math.Exp(-logit(row, w)))
		h, r := p*(1-p), y[i]-p
		for j, v := range row {
			hv := h * v
			for k, u := range row[:j+1] {
				a[j][k] += hv * u
			}
			a[n][j] += hv
			a[j][d] += v * r
		}
		a[n][n] += h
		a[n][d] += r
	}
	for j := range d {
		for k := range j {
			a[k][j] = a[j][k]
		}
	}
	for k := range n {
		a[k][k] += ridge
		a[k][d] -= ridge * w[k]
	}
	a[n][n] += 1e-6
	return solve(a)
}

// solve eliminates by Gauss and Jordan; the last column is the right side.
func solve(a [][]float64) []float64 {
	n := len(a)
	for c := range n {
		p := c
		for r := c; r < n; r++ {
			if math.Abs(a[r][c]) > math.Abs(a[p][c]) {
				p = r
			}
		}
		a[c], a[p] = a[p], a[c]
		for r := range n {
			if r == c {
				continue
			}
			f := a[r][c] / a[c][c]
			for k := c; k <= n; k++ {
				a[r][k] -= f * a[c][k]
			}
		}
	}
	out := make([]float64, n)
	for r := range n {
		out[r] = a[r][n] / a[r][r]
	}
	return out
}
