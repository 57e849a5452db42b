/** The pages in the order of the navigation. */
import type { FunctionComponent } from 'preact'
import { Configuration } from '../pages/configuration/configuration.tsx'
import { Keys } from '../pages/keys/keys.tsx'
import { Mesh } from '../pages/mesh/mesh.tsx'
import { Modules } from '../pages/modules/modules.tsx'
import { Overview } from '../pages/overview/overview.tsx'
import { Requests } from '../pages/requests/requests.tsx'
import { TryIt } from '../pages/try/try-it.tsx'
import { Usage } from '../pages/usage/usage.tsx'
import { Workers } from '../pages/workers/workers.tsx'

interface PageEntry {
  /** In the hash part of the URL. */
  readonly name: string
  readonly title: string
  /** Plugins whose routes the page reads. */
  readonly needs: readonly string[]
  readonly Page: FunctionComponent
}

export const pages: readonly PageEntry[] = [
  { name: 'overview', title: 'Overview', needs: [], Page: Overview },
  { name: 'workers', title: 'Workers', needs: ['workers'], Page: Workers },
  { name: 'requests', title: 'Requests', needs: ['debug'], Page: Requests },
  { name: 'modules', title: 'Modules', needs: ['wasm'], Page: Modules },
  { name: 'try', title: 'Try it', needs: [], Page: TryIt },
  { name: 'usage', title: 'Usage', needs: ['usage'], Page: Usage },
  { name: 'keys', title: 'Keys', needs: ['keys'], Page: Keys },
  { name: 'mesh', title: 'Mesh', needs: ['mesh'], Page: Mesh },
  { name: 'configuration', title: 'Configuration', needs: ['reload'], Page: Configuration },
]
