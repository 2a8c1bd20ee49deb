// Package lci tests what is estimated of links against what they are set to: kernel TCP over the user-space
// link of integration/link, read by the sensor sock_diag, estimated by mihf/lci.
package lci
