package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"time"
)

// startEtcd starts the etcd that all clusters share, each with its own prefix, and returns when
// it is ready.
func (s *set) startEtcd(ctx context.Context, timeout time.Duration, client, peer int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %s", timeout))
	defer cancel()
	s.etcdURL = fmt.Sprintf("http://127.0.0.1:%d", client)
	peerURL := fmt.Sprintf("http://127.0.0.1:%d", peer)
	argv, err := s.locator.argv(etcdProgram, []string{
		"--name=etcd",
		"--data-dir=" + filepath.Join(s.dir, "etcd"),
		"--listen-client-urls=" + s.etcdURL,
		"--advertise-client-urls=" + s.etcdURL,
		"--listen-peer-urls=" + peerURL,
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=etcd=" + peerURL,
		"--log-level=warn",
		// The data need not survive a power failure, and tests should be fast.
		"--unsafe-no-fsync",
		"--quota-backend-bytes=8589934592",
	})
	if err != nil {
		return err
	}
	if s.etcd, err = s.launcher.start("etcd", filepath.Join(s.dir, "logs", "etcd.log"), argv); err != nil {
		return err
	}
	plain := &http.Client{Timeout: 5 * time.Second}
	return poll(ctx, s.etcd, func() error { return get(ctx, plain, s.etcdURL+"/health") })
}

// get requests url, and returns an error that quotes the response unless its status is 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}
