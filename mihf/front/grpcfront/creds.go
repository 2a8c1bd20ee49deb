package grpcfront

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"mihf.dev/mihf"
)

// callerCreds authenticates connections: a unix socket's by the kernel, others by their
// certificate.
type callerCreds struct {
	tls credentials.TransportCredentials // nil: unix sockets only
}

// newCreds refuses a configuration that would let anyone in.
func newCreds(cfg *tls.Config) (*callerCreds, error) {
	c := &callerCreds{}
	if cfg == nil {
		return c, nil
	}
	if cfg.ClientAuth != tls.RequireAndVerifyClientCert || cfg.ClientCAs == nil {
		return nil, errors.New("gRPC over TCP: TLS must require client certificates and name the authority that signed them")
	}
	c.tls = credentials.NewTLS(cfg)
	return c, nil
}

// callerInfo is what a connection's authentication found out.
type callerInfo struct {
	credentials.CommonAuthInfo
	caller mihf.Caller
}

func (callerInfo) AuthType() string { return "mihf" }

// ServerHandshake finds out who the caller is.
func (c *callerCreds) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	plain := raw
	if counted, ok := raw.(*conn); ok {
		plain = counted.Conn
	}
	if u, ok := plain.(*net.UnixConn); ok {
		caller, err := peerOf(u)
		return raw, callerInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, caller}, err
	}
	if c.tls == nil {
		return nil, nil, fmt.Errorf("connection from %v: neither a unix socket nor TLS", raw.RemoteAddr())
	}
	conn, info, err := c.tls.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	t, ok := info.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 {
		return nil, nil, fmt.Errorf("connection from %v: no verified client certificate", raw.RemoteAddr())
	}
	leaf := t.State.VerifiedChains[0][0]
	caller := mihf.Caller{Front: "grpc", Name: leaf.Subject.CommonName}
	return conn, callerInfo{t.CommonAuthInfo, caller}, nil
}

// ClientHandshake is not used: these are a server's credentials.
func (c *callerCreds) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("server credentials")
}

// Info describes the credentials.
func (c *callerCreds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "mihf"}
}

// Clone copies the credentials.
func (c *callerCreds) Clone() credentials.TransportCredentials { d := *c; return &d }

// OverrideServerName is for clients.
func (c *callerCreds) OverrideServerName(string) error { return nil }

// peerOf asks the kernel who connected (SO_PEERCRED: the credentials at connect).
func peerOf(u *net.UnixConn) (mihf.Caller, error) {
	cred, err := peerCred(u)
	if err != nil {
		return mihf.Caller{}, fmt.Errorf("peer credentials: %w", err)
	}
	return mihf.Caller{Front: "grpc", UID: mihf.Some(cred.Uid), GID: mihf.Some(cred.Gid), PID: int(cred.Pid)}, nil
}

func peerCred(u *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, err
	}
	ctlErr := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if ctlErr != nil {
		return nil, ctlErr
	}
	return cred, err
}

// callerOf returns who sent a request.
func callerOf(ctx context.Context) mihf.Caller {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(callerInfo); ok {
			return info.caller
		}
	}
	return mihf.Caller{Front: "grpc"}
}
