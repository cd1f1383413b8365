package schema

import (
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/gitfleet/gitfleet/gitsource/hub/document"
)

func init() { of(checkPod) }

const maxPort = 65535

// checkPod checks the spec of a Pod or of a template of Pods.
func checkPod(c *comparison, spec *corev1.PodSpec, p *document.FieldPath) {
	c.labels(anyMap(spec.NodeSelector), p.Child("nodeSelector"))
	volumes := map[string]bool{}
	for i, v := range spec.Volumes {
		at := p.Child("volumes").At(i)
		if v.Name != "" {
			volumes[v.Name] = true
			c.invalid(at.Child("name"), "name of a volume", v.Name, validation.IsDNS1123Label(v.Name))
		}
		exactlyOne(c, v.VolumeSource, true, at, "source")
	}
	if len(spec.Containers) == 0 {
		c.missing(p.Child("containers"), "add a container")
	}
	names := map[string]bool{}
	for i := range spec.Containers {
		names[spec.Containers[i].Name] = true
		checkContainer(c, &spec.Containers[i], volumes, p.Child("containers").At(i))
	}
	for i := range spec.InitContainers {
		at := p.Child("initContainers").At(i)
		if name := spec.InitContainers[i].Name; name != "" && names[name] {
			c.report(at.Child("name"), fmt.Sprintf("a container is named %q as well; the names of all containers of a Pod differ", name))
		}
		checkContainer(c, &spec.InitContainers[i], volumes, at)
	}
	for i, t := range spec.Tolerations {
		at := p.Child("tolerations").At(i)
		switch {
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			c.report(at.Child("value"), "not allowed with the operator Exists; remove it")
		case t.Key == "" && t.Operator != corev1.TolerationOpExists:
			c.report(at.Child("operator"), "must be Exists if there is no key")
		}
	}
	if spec.NodeName != "" {
		c.r.Warnf(p.Child("nodeName"), "binds the Pod to a node of this name, past the scheduler, and a cluster that has no such node deletes it; remove it, or use a nodeSelector")
	}
	if spec.ServiceAccountName != "" {
		c.invalid(p.Child("serviceAccountName"), "name of a ServiceAccount", spec.ServiceAccountName, validation.IsDNS1123Subdomain(spec.ServiceAccountName))
	}
	if spec.DNSPolicy == corev1.DNSNone && (spec.DNSConfig == nil || len(spec.DNSConfig.Nameservers) == 0) {
		c.missing(p.Child("dnsConfig", "nameservers"), "the dnsPolicy None needs at least one")
	}
	if spec.Hostname != "" {
		c.invalid(p.Child("hostname"), "host name", spec.Hostname, validation.IsDNS1123Label(spec.Hostname))
	}
	if spec.Subdomain != "" {
		c.invalid(p.Child("subdomain"), "subdomain", spec.Subdomain, validation.IsDNS1123Label(spec.Subdomain))
	}
}

// anyMap returns labels as a mapping of a document.
func anyMap(labels map[string]string) map[string]any {
	m := make(map[string]any, len(labels))
	for k, v := range labels {
		m[k] = v
	}
	return m
}

func checkContainer(c *comparison, of *corev1.Container, volumes map[string]bool, p *document.FieldPath) {
	if of.Name != "" {
		c.invalid(p.Child("name"), "name of a container", of.Name, validation.IsDNS1123Label(of.Name))
	}
	require(c, of.Image, p.Child("image"))
	if strings.TrimSpace(of.Image) != of.Image {
		c.report(p.Child("image"), "must not begin or end with a space")
	}
	ports := map[string]bool{}
	for i, port := range of.Ports {
		at := p.Child("ports").At(i)
		if port.ContainerPort != 0 { // a missing one is reported elsewhere
			between(c, port.ContainerPort, 1, maxPort, at.Child("containerPort"))
		}
		if port.HostPort != 0 {
			between(c, port.HostPort, 1, maxPort, at.Child("hostPort"))
		}
		if port.Name != "" {
			c.invalid(at.Child("name"), "name of a port", port.Name, validation.IsValidPortName(port.Name))
			c.repeated(ports, port.Name, at.Child("name"))
		}
	}
	for i, e := range of.Env {
		at := p.Child("env").At(i)
		if e.Name != "" {
			c.invalid(at.Child("name"), "name of an environment variable", e.Name, validation.IsRelaxedEnvVarName(e.Name))
		}
		if e.ValueFrom != nil {
			exactlyOne(c, *e.ValueFrom, false, at.Child("valueFrom"), "source")
			if e.Value != "" {
				c.report(at.Child("valueFrom"), "not allowed together with a value; remove one of them")
			}
		}
	}
	for i, m := range of.VolumeMounts {
		at := p.Child("volumeMounts").At(i)
		switch {
		case m.Name == "":
			require(c, m.Name, at.Child("name"))
		case !volumes[m.Name]:
			c.report(at.Child("name"), fmt.Sprintf("there is no volume %q in the Pod; correct the name, or add the volume", m.Name))
		}
		if m.SubPath != "" && !isBelow(m.SubPath) || m.SubPathExpr != "" && !isBelow(m.SubPathExpr) {
			c.report(at, "the subPath must be relative, and must not contain '..'")
		}
	}
	for _, probe := range []struct {
		name string
		of   *corev1.Probe
	}{{"livenessProbe", of.LivenessProbe}, {"readinessProbe", of.ReadinessProbe}, {"startupProbe", of.StartupProbe}} {
		if probe.of != nil {
			exactlyOne(c, probe.of.ProbeHandler, false, p.Child(probe.name), "handler")
		}
	}
	checkQuantities(c, of.Resources.Limits, p.Child("resources", "limits"))
	checkQuantities(c, of.Resources.Requests, p.Child("resources", "requests"))
	for name, request := range of.Resources.Requests {
		at := p.Child("resources", "requests", string(name))
		if limit, limited := of.Resources.Limits[name]; limited && request.Cmp(limit) > 0 {
			c.report(at, "must not be more than the limit")
		}
	}
}

func checkQuantities(c *comparison, quantities corev1.ResourceList, p *document.FieldPath) {
	for name, quantity := range quantities {
		if quantity.Sign() < 0 {
			c.report(p.Child(string(name)), "must not be negative")
		}
	}
}

// isBelow reports whether a path is relative and does not lead upwards.
func isBelow(p string) bool {
	for _, segment := range strings.Split(p, "/") {
		if segment == ".." {
			return false
		}
	}
	return !path.IsAbs(p)
}

// repeated reports a value that an earlier one equals.
func (c *comparison) repeated(seen map[string]bool, value string, p *document.FieldPath) {
	if seen[value] {
		c.report(p, fmt.Sprintf("%q is used twice; rename one of them", value))
	}
	seen[value] = true
}
