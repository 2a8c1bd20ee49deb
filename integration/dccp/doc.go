// Package dccp tests DCCP connections where they meet the rest: a broker that freezes them,
// and real addresses that come and go.
package dccp
