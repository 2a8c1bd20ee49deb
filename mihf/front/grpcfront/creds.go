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
	tls         credentials.TransportCredentials // nil: unix sockets only
	connections *connections
}

// newCreds refuses a configuration that would let anyone in.
func newCreds(cfg *tls.Config, to *connections) (*callerCreds, error) {
	c := &callerCreds{connections: to}
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
	caller  mihf.Caller
	local   bool // on this host, by a unix socket
	conn    *conn
	refused error // every call; nil: none
}

func (callerInfo) AuthType() string { return "mihf" }

// ServerHandshake finds out who the caller is, and whether it has its share of connections
// already: then its calls on this one are answered with that.
func (c *callerCreds) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	counted, ok := raw.(*conn)
	if !ok {
		return nil, nil, fmt.Errorf("connection from %v: not by this server's listener", raw.RemoteAddr())
	}
	secured, info, err := c.authenticate(counted)
	if err != nil {
		return nil, nil, err
	}
	info.conn = counted
	if info.refused, err = c.connections.share(counted, info.caller); err != nil {
		return nil, nil, err
	}
	return secured, info, nil
}

func (c *callerCreds) authenticate(raw *conn) (net.Conn, callerInfo, error) {
	if u, ok := raw.Conn.(*net.UnixConn); ok {
		caller, err := peerOf(u)
		return raw, callerInfo{CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}, caller: caller, local: true}, err
	}
	if c.tls == nil {
		return nil, callerInfo{}, fmt.Errorf("connection from %v: neither a unix socket nor TLS", raw.RemoteAddr())
	}
	conn, info, err := c.tls.ServerHandshake(raw)
	if err != nil {
		return nil, callerInfo{}, err
	}
	t, ok := info.(credentials.TLSInfo)
	if !ok || len(t.State.VerifiedChains) == 0 {
		return nil, callerInfo{}, fmt.Errorf("connection from %v: no verified client certificate", raw.RemoteAddr())
	}
	leaf := t.State.VerifiedChains[0][0]
	return conn, callerInfo{CommonAuthInfo: t.CommonAuthInfo, caller: mihf.Caller{Front: "grpc", Name: leaf.Subject.CommonName}}, nil
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
func callerOf(ctx context.Context) mihf.Caller { return infoOf(ctx).caller }

// infoOf returns what is known of the connection that a request came by.
func infoOf(ctx context.Context) callerInfo {
	if p, ok := peer.FromContext(ctx); ok {
		if info, ok := p.AuthInfo.(callerInfo); ok {
			return info
		}
	}
	return callerInfo{caller: mihf.Caller{Front: "grpc"}}
}
