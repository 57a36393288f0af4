// Program device-plugin is a device plugin of the kubelet. Each file in a directory is a device, and is healthy if the file
// is empty. So whoever writes the files decides which devices there are, and when. While the directory is missing, the
// plugin is not registered.
//
//	device-plugin RESOURCE DIRECTORY
package main

import (
	"context"
	"log"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// How often the files are looked at.
const interval = 50 * time.Millisecond

type plugin struct {
	api.UnimplementedDevicePluginServer
	directory string
}

func main() {
	resource, directory := os.Args[1], os.Args[2]
	for ; ; time.Sleep(interval) {
		if _, err := os.Stat(directory); err == nil {
			log.Print(serve(resource, directory))
		}
	}
}

// Serves until the directory is gone, or the kubelet starts again: it then removes all sockets, and forgets all plugins.
func serve(resource, directory string) error {
	socket := filepath.Join(api.DevicePluginPath, filepath.Base(resource)+".sock")
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	defer server.Stop()
	api.RegisterDevicePluginServer(server, &plugin{directory: directory})
	go server.Serve(listener)

	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(context.Background(), &api.RegisterRequest{
		Version: api.Version, Endpoint: filepath.Base(socket), ResourceName: resource,
	})
	if err != nil {
		return err
	}
	log.Print("registered")
	for ; ; time.Sleep(interval) {
		for _, path := range []string{socket, directory} {
			if _, err := os.Lstat(path); err != nil {
				return err
			}
		}
	}
}

func (p *plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

func (p *plugin) ListAndWatch(_ *api.Empty, stream api.DevicePlugin_ListAndWatchServer) error {
	var sent map[string]string
	for stream.Context().Err() == nil {
		health := map[string]string{}
		files, err := os.ReadDir(p.directory)
		if err != nil {
			return err
		}
		for _, file := range files {
			health[file.Name()] = api.Unhealthy
			if info, err := file.Info(); err == nil && info.Size() == 0 {
				health[file.Name()] = api.Healthy
			}
		}
		if !reflect.DeepEqual(health, sent) {
			response := &api.ListAndWatchResponse{}
			for id, state := range health {
				response.Devices = append(response.Devices, &api.Device{ID: id, Health: state})
			}
			if err := stream.Send(response); err != nil {
				return err
			}
			log.Print(health)
			sent = health
		}
		time.Sleep(interval)
	}
	return nil
}

func (p *plugin) Allocate(_ context.Context, request *api.AllocateRequest) (*api.AllocateResponse, error) {
	response := &api.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &api.ContainerAllocateResponse{})
	}
	return response, nil
}
