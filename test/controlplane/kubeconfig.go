package main

import (
	"sigs.k8s.io/yaml"
)

// The part of a kubeconfig that is written here. client-go has the complete type, but would be
// the only Kubernetes library that a prebuilt build compiles.
type kubeconfig struct {
	APIVersion     string         `json:"apiVersion"`
	Kind           string         `json:"kind"`
	CurrentContext string         `json:"current-context"`
	Clusters       []namedCluster `json:"clusters"`
	Contexts       []namedContext `json:"contexts"`
	Users          []namedUser    `json:"users"`
}

type namedCluster struct {
	Name    string `json:"name"`
	Cluster struct {
		Server    string `json:"server"`
		Authority []byte `json:"certificate-authority-data"`
	} `json:"cluster"`
}

type namedContext struct {
	Name    string `json:"name"`
	Context struct {
		Cluster string `json:"cluster"`
		User    string `json:"user"`
	} `json:"context"`
}

type namedUser struct {
	Name string `json:"name"`
	User struct {
		Certificate []byte `json:"client-certificate-data"`
		Key         []byte `json:"client-key-data"`
	} `json:"user"`
}

// writeKubeconfig writes a kubeconfig with one context for each of the clusters, with its name.
// The first is the current context.
func writeKubeconfig(path string, clusters ...*cluster) error {
	config := kubeconfig{APIVersion: "v1", Kind: "Config", CurrentContext: clusters[0].name}
	for _, c := range clusters {
		server := namedCluster{Name: c.name}
		server.Cluster.Server = c.url()
		server.Cluster.Authority = c.authority
		config.Clusters = append(config.Clusters, server)

		context := namedContext{Name: c.name}
		context.Context.Cluster = c.name
		context.Context.User = c.name
		config.Contexts = append(config.Contexts, context)

		user := namedUser{Name: c.name}
		user.User.Certificate = c.admin.cert
		user.User.Key = c.admin.key
		config.Users = append(config.Users, user)
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}
