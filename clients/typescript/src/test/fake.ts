import { connectNodeAdapter } from "@connectrpc/connect-node";
import type { ConnectRouter } from "@connectrpc/connect";
import { createServer } from "node:http2";
import { connect as tcpConnect, createServer as createTcpServer, type AddressInfo, type Socket } from "node:net";

/** A gRPC server in this process with the handlers that a test needs. */
export async function serve(routes: (router: ConnectRouter) => void): Promise<{ target: string; stop: () => void }> {
  const server = createServer(connectNodeAdapter({ routes, connect: false, grpcWeb: false }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { target: `127.0.0.1:${(server.address() as AddressInfo).port}`, stop: () => server.close() };
}

/** A relay to `target` whose connections a test can cut. */
export async function relay(target: string): Promise<{ target: string; cut: () => void; stop: () => void }> {
  const [host, port] = target.split(":");
  const open = new Set<Socket>();
  const server = createTcpServer((near) => {
    const far = tcpConnect(Number(port), host);
    for (const [own, other] of [[near, far], [far, near]] as const) {
      open.add(own);
      own.on("error", () => other.destroy()).on("close", () => (open.delete(own), other.destroy()));
      own.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => open.forEach((socket) => socket.destroy());
  return { target: `127.0.0.1:${(server.address() as AddressInfo).port}`, cut, stop: () => (cut(), server.close()) };
}
