// Package mihv1 is the protocol mih.v1 in Go, generated from the .proto files beside it.
// Package conv turns its messages into the values of package mihf and back.
package mihv1
