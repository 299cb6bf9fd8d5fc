/** Starts and stops the HTTP servers with errors that say what to do. */
import { chmodSync, existsSync, rmSync } from "node:fs";
import type { Server } from "node:http";
import { connect } from "node:net";
import { GimbalError } from "@gimbal-rl/core";

function codeOf(error: unknown): string {
  return typeof error === "object" && error !== null && "code" in error ? String(error.code) : "";
}

/**
 * Listens on a TCP port; resolves to the port.
 * @throws {GimbalError} `port-in-use`, `config-invalid`.
 */
export function listenOnPort(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const code = codeOf(error);
      reject(
        code === "EADDRINUSE"
          ? new GimbalError(
              "port-in-use",
              `Port ${port} on ${host} is in use. Stop the other program, or choose another port (0 = any free one).`,
              { cause: error },
            )
          : new GimbalError(
              "config-invalid",
              `Cannot listen on ${host}:${port} (${code || error.message}). Choose another host or port.`,
              { cause: error },
            ),
      );
    });
    server.listen(port, host, () => {
      const address = server.address();
      resolve(typeof address === "object" && address !== null ? address.port : port);
    });
  });
}

/**
 * Listens on a Unix socket that only this user can open. A socket file nobody listens on is replaced.
 * @throws {GimbalError} `port-in-use`, `config-invalid`.
 */
export async function listenOnSocket(server: Server, path: string): Promise<void> {
  if (existsSync(path)) {
    if (await isServed(path)) {
      throw new GimbalError("port-in-use", `Socket ${path} is in use. Choose another path.`);
    }
    rmSync(path);
  }
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(
        new GimbalError("config-invalid", `Cannot listen on socket ${path} (${codeOf(error)}).`, {
          cause: error,
        }),
      ),
    );
    server.listen(path, resolve);
  });
  chmodSync(path, 0o600);
}

function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
