/**
 * Keeps one client from using up all connections.
 *
 * Law: a connection that carries an authenticated request is never closed here; of the others only the youngest
 * ones stay, so half-sent requests and idle sockets cannot lock anyone out.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";

/** The guard of one server. */
export interface ConnectionGuard {
  /** Call when a request on this socket was authenticated; call the result when it is answered. */
  hold(socket: Socket): () => void;
  readonly count: number;
  destroyAll(): void;
}

/** Watches the connections of a server. */
export function guardConnections(
  server: Server,
  maxIdle: number,
  onEvict: () => void,
): ConnectionGuard {
  const idle = new Set<Socket>();
  const held = new Map<Socket, number>();
  server.on("connection", (socket: Socket) => {
    idle.add(socket);
    socket.once("close", () => {
      idle.delete(socket);
      held.delete(socket);
    });
    if (idle.size <= maxIdle) return;
    for (const oldest of idle) {
      idle.delete(oldest);
      oldest.destroy();
      onEvict();
      break;
    }
  });
  return {
    hold: (socket) => {
      idle.delete(socket);
      held.set(socket, (held.get(socket) ?? 0) + 1);
      return () => {
        const left = (held.get(socket) ?? 1) - 1;
        if (left > 0) held.set(socket, left);
        else {
          held.delete(socket);
          if (!socket.destroyed) idle.add(socket);
        }
      };
    },
    get count() {
      return idle.size + held.size;
    },
    destroyAll: () => {
      for (const socket of [...idle, ...held.keys()]) socket.destroy();
    },
  };
}
