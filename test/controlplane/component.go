package main

import (
	"context"
	"strconv"
	"strings"
)

// A component is a program that runs once per cluster. To add another one to clusters (such as
// kwok, to simulate nodes), add it to the list in components.
type component struct {
	program program
	flags   func(c *cluster) []string
	ready   func(ctx context.Context, c *cluster, p *process) error // blocks until it is ready
}

// components returns the components of each cluster, in the order of starting.
func components(o upOptions, etcd string, tokens tokenKey) []component {
	list := []component{{apiserverProgram, apiserverFlags(etcd, tokens, o.audit), answers}}
	if flags := controllerFlags(o.controllers); flags != nil {
		list = append(list, component{kcmProgram, kcmFlags(tokens, flags), runs})
	}
	if o.scheduler {
		list = append(list, component{schedulerProgram, schedulerFlags, runs})
	}
	return list
}

// tokenKey names the files of the key pair that signs service account tokens.
type tokenKey struct{ public, private string }

func apiserverFlags(etcd string, tokens tokenKey, audit bool) func(*cluster) []string {
	return func(c *cluster) []string {
		flags := []string{
			"--etcd-servers=" + etcd,
			"--etcd-prefix=/" + c.name,
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(c.port),
			"--tls-cert-file=" + c.file("serving.crt"),
			"--tls-private-key-file=" + c.file("serving.key"),
			"--client-ca-file=" + c.file("ca.crt"),
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + tokens.public,
			"--service-account-signing-key-file=" + tokens.private,
			"--service-cluster-ip-range=10.0.0.0/24",
			"--authorization-mode=RBAC",
			// Without a controller nothing creates the default service accounts that it
			// requires.
			"--disable-admission-plugins=ServiceAccount",
			"--endpoint-reconciler-type=none",
			"--allow-privileged=true",
			// With these flags, API servers can be aggregated.
			"--requestheader-client-ca-file=" + c.file("front-proxy-ca.crt"),
			"--requestheader-allowed-names=" + proxyName,
			"--requestheader-username-headers=X-Remote-User",
			"--requestheader-group-headers=X-Remote-Group",
			"--requestheader-extra-headers-prefix=X-Remote-Extra-",
			"--proxy-client-cert-file=" + c.file("front-proxy.crt"),
			"--proxy-client-key-file=" + c.file("front-proxy.key"),
		}
		if audit {
			flags = append(flags, auditFlags(c)...)
		}
		return flags
	}
}

// workloadControllers create and delete workloads and namespaces as on a real cluster, with
// half the memory of all controllers.
var workloadControllers = []string{
	"deployment-controller",
	"replicaset-controller",
	"statefulset-controller",
	"daemonset-controller",
	"job-controller",
	"namespace-controller",
	"garbage-collector-controller",
}

// controllerFlags returns nil if no controller manager is wanted.
func controllerFlags(controllers string) []string {
	switch controllers {
	case "", "none":
		return nil
	case "all":
		return []string{}
	case "workload":
		return []string{"--controllers=" + strings.Join(workloadControllers, ",")}
	default:
		return []string{"--controllers=" + controllers}
	}
}

func kcmFlags(tokens tokenKey, controllers []string) func(*cluster) []string {
	return func(c *cluster) []string {
		return append([]string{
			"--kubeconfig=" + c.file("kubeconfig"),
			"--leader-elect=false",
			"--secure-port=0",
			"--service-account-private-key-file=" + tokens.private,
			"--root-ca-file=" + c.file("ca.crt"),
		}, controllers...)
	}
}

func schedulerFlags(c *cluster) []string {
	return []string{
		"--kubeconfig=" + c.file("kubeconfig"),
		"--leader-elect=false",
		"--secure-port=0",
	}
}
