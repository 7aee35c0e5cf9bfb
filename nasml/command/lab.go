package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
)

type labCmd struct {
	IP        address `name:"ip" default:"127.0.0.1" help:"Address to listen on: 127.0.0.1 is reached from this machine only, 0.0.0.0 from wherever the network lets in (containers)."`
	Port      int     `help:"Port to listen on. Without it: 8888, or the next that is free." env:"NASML_PORT"`
	NoBrowser bool    `help:"Do not open a browser; the address is printed in any case."`
}

type address struct{ netip.Addr }

// UnmarshalText parses the value of --ip.
func (a *address) UnmarshalText(text []byte) error {
	if a.Addr.UnmarshalText(text) != nil || !a.IsValid() {
		return fmt.Errorf("must be 127.0.0.1 (this machine only), 0.0.0.0 (every network, for containers) or another "+
			"IP address of this machine, got %q", text)
	}
	return nil
}

func (v *labCmd) Run(ctx context.Context, c console, s *site) error {
	port, err := choosePort(v.IP.Addr, v.Port)
	if err != nil {
		return err
	}
	if err := s.setup(ctx, c); err != nil {
		return err
	}
	var options []string
	if v.NoBrowser {
		options = append(options, "--no-browser")
	}
	if exists(filepath.Join(s.Root, "notebooks", "index.ipynb")) { // and no launcher
		options = append(options, "--LabApp.default_url=/lab/tree/index.ipynb")
	}
	if os.Getenv(tokenVar) != "" { // which Jupyter does not print
		shown := v.IP.Addr
		if shown.IsUnspecified() { // every address, this one, too
			shown = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		c.logf("JupyterLab on notebooks/: http://%s/lab with the token of $%s; Ctrl-C stops it",
			netip.AddrPortFrom(shown, uint16(port)), tokenVar)
	} else {
		c.logf("JupyterLab on notebooks/: the address follows; Ctrl-C stops it")
	}
	at := netip.AddrPortFrom(v.IP.Addr, uint16(port))
	ctx, stop := context.WithCancel(ctx)
	wait := s.completionWhenUp(ctx, c, at)
	defer wait()
	defer stop()
	return s.serveLab(ctx, c, filepath.Join(s.Root, "notebooks"), at, options...)
}

// tokenVar is Jupyter's own: the token that lets a reader in.
const tokenVar = "JUPYTER_TOKEN"

// choosePort returns the wanted port if it is free, or without one the first free port from 8888 on.
func choosePort(ip netip.Addr, wanted int) (int, error) {
	if wanted != 0 {
		if err := tryPort(ip, wanted); err != nil {
			return 0, fmt.Errorf("port %d cannot be used (%w): stop what listens there, or take another with --port",
				wanted, err)
		}
		return wanted, nil
	}
	for port := 8888; port < 8988; port++ {
		if tryPort(ip, port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("no free port from 8888 to 8987: take another with --port")
}

func tryPort(ip netip.Addr, port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort(ip.String(), strconv.Itoa(port)))
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	if err != nil {
		return err
	}
	return listener.Close()
}

// serveLab runs JupyterLab until ctx ends, then stops it and its kernels. Jupyter uses $JUPYTER_TOKEN, or prints the
// address with a random token.
func (s *site) serveLab(ctx context.Context, c console, folder string, at netip.AddrPort, options ...string) error {
	args := append([]string{
		"-m", "jupyterlab", "--ServerApp.ip=" + at.Addr().String(),
		"--ServerApp.port=" + strconv.Itoa(int(at.Port())), "--ServerApp.port_retries=0",
		"--ServerApp.root_dir=" + folder,
		"--MultiKernelManager.default_kernel_name=gonb",
		"--LabApp.extension_manager=readonly", "--Application.log_level=WARN",
	}, options...)
	if os.Geteuid() == 0 { // in containers; the token is asked for all the same
		args = append(args, "--allow-root")
	}
	cmd := s.guarded(ctx, args...) // Jupyter asks for confirmation on Ctrl-C, but not on SIGTERM
	cmd.Dir, cmd.Env = folder, s.env()
	cmd.Stdout, cmd.Stderr = c.Err, c.Err
	err := runGuarded(cmd)
	if ctx.Err() != nil {
		c.logf("JupyterLab has stopped")
		return nil
	}
	if err != nil {
		return fmt.Errorf("JupyterLab stopped (%w): its last lines say why", err)
	}
	return nil
}
